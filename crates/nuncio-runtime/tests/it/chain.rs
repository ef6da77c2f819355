//! Trying again, and trying another.

use std::sync::Arc;

use futures_util::StreamExt as _;
use nuncio_runtime::model::{
    FakeModel, Model as _, ModelChain, ModelChunk, ModelError, ModelRequest, RetryPolicy,
};
use tokio::time::{Duration, Instant};

use crate::support::fake;

/// A model that fails like this so many times, and then says its name.
fn failing(name: &str, error: &str, times: u32) -> FakeModel {
    let fails = format!(
        "[[rules]]\ntimes = {times}\notherwise = true\nreply = [{{ error = '{error}' }}]\n"
    );
    let says = format!("[[rules]]\notherwise = true\nreply = [{{ text = '{name}' }}]");
    let rules = if times > 0 { fails + &says } else { says };
    fake(name, &rules)
}

async fn answer(chain: &ModelChain) -> Result<String, ModelError> {
    let mut answer = chain.generate(ModelRequest::text("x")).await?;
    let mut text = String::new();
    while let Some(chunk) = answer.next().await {
        if let ModelChunk::Text(words) = chunk? {
            text.push_str(&words);
        }
    }
    Ok(text)
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_three_times() {
    for error in ["unavailable", "rate_limited"] {
        let model = failing("a", error, 2);
        let chain = ModelChain::new(Arc::new(model.clone()));
        let began = Instant::now();
        assert_eq!(answer(&chain).await.unwrap(), "a");
        assert_eq!(model.requests().len(), 3);
        let waited = began.elapsed();
        let least = Duration::from_millis(250 + 500);
        assert!(waited >= least && waited <= least * 2, "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_model_is_asked_when_one_is_given_up() {
    let (first, second) = (failing("a", "unavailable", 9), failing("b", "auth", 9));
    let third = failing("c", "unavailable", 0);
    let chain = ModelChain::new(Arc::new(first.clone()))
        .or(Arc::new(second.clone()))
        .or(Arc::new(third));
    assert_eq!(answer(&chain).await.unwrap(), "c");
    assert_eq!((first.requests().len(), second.requests().len()), (3, 1));
    assert_eq!(chain.name(), "a");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_pass_is_not_tried_again() {
    for error in ["invalid", "context_too_long", "refused"] {
        let (first, second) = (failing("a", error, 1), failing("b", error, 0));
        let chain = ModelChain::new(Arc::new(first.clone())).or(Arc::new(second.clone()));
        let error = answer(&chain).await.unwrap_err();
        assert!(!error.is_transient(), "{error}");
        assert_eq!((first.requests().len(), second.requests().len()), (1, 0));
    }
}

/// The last error is told, and tries are as many as the policy says.
#[tokio::test(start_paused = true)]
async fn a_chain_comes_to_its_end() {
    let model = failing("a", "rate_limited", 9);
    let policy = RetryPolicy {
        tries: 5,
        ..RetryPolicy::default()
    };
    let chain = ModelChain::new(Arc::new(model.clone())).with_policy(policy);
    let error = answer(&chain).await.unwrap_err();
    assert_eq!(error, ModelError::RateLimited { retry_after: None });
    assert_eq!(model.requests().len(), 5);
}

/// What has been seen cannot be taken back.
#[tokio::test(start_paused = true)]
async fn nothing_is_tried_again_after_the_first_piece() {
    let first = fake(
        "a",
        "[[rules]]\notherwise = true\nreply = [{ text = 'half' }, 'cut']",
    );
    let second = failing("b", "unavailable", 0);
    let chain = ModelChain::new(Arc::new(first.clone())).or(Arc::new(second.clone()));
    assert!(matches!(answer(&chain).await, Err(ModelError::Cut(_))));
    assert_eq!((first.requests().len(), second.requests().len()), (1, 0));
}
