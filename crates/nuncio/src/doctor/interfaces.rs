//! Every interface: whether its address fits that of the card (BR-098), and whether the agent
//! answers there (BR-100).

use std::time::{Duration, Instant};

use nuncio_client::{
    Cause, Client, ClientBuilder, ConnectError, Discovered, RetryPolicy, Timeouts, cause,
};
use nuncio_engine::RandomIds;
use nuncio_protocol::{
    A2aError, AgentInterface, AgentService as _, Binding, Call, ErrorKind, GetTaskRequest,
    Ids as _, Task,
};
use url::Url;

use super::TIMEOUT;
use super::outside::Visit;
use super::report::{Check, Report};
use crate::client::{Attachments, make_absolute};

const ELSEWHERE: &str =
    "something else answers there: a proxy, a page, or another path than the agent's";

/// Compares and calls every interface.
pub(super) async fn examine(
    visit: &Visit<'_>,
    report: &mut Report,
    found: &Discovered,
    interfaces: &[AgentInterface],
) {
    let home = visit.public.and_then(|url| Url::parse(url).ok());
    let home = home.unwrap_or_else(|| home_of(&found.url));
    for interface in interfaces {
        let what = named(interface);
        if let Some(why) = misfit(interface, &home) {
            report.add(match visit.public {
                Some(_) => Check::error(&what, why).hint("server.public_url and the card disagree"),
                None => Check::warning(&what, why).hint(
                    "see that callers reach it there: the card must name the address that they use",
                ),
            });
        }
        report.add(call(visit, &what, found, interface).await);
    }
}

fn named(interface: &AgentInterface) -> String {
    let tenant = interface.tenant.as_ref();
    let tenant = tenant.map(|tenant| format!(" tenant {tenant}"));
    format!(
        "interface {} {} {}{}",
        interface.protocol_binding,
        interface.protocol_version,
        interface.url,
        tenant.unwrap_or_default()
    )
}

/// The address of the agent whose card is there.
fn home_of(card: &Url) -> Url {
    let mut home = card.clone();
    let path = home.path();
    let folder = path.find("/.well-known/").or_else(|| path.rfind('/'));
    let folder = path[..folder.unwrap_or_default()].to_owned();
    home.set_path(&folder);
    home
}

/// Why an address does not look like one of the agent that is at `home`.
fn misfit(interface: &AgentInterface, home: &Url) -> Option<String> {
    // Where another binding belongs is not ours to know.
    let is_grpc = interface.binding()? == Binding::Grpc;
    if is_grpc && !interface.url.contains("://") {
        let url = Url::parse(&format!("grpc://{}", interface.url)).ok()?;
        let same = url.host_str()?.eq_ignore_ascii_case(home.host_str()?);
        return (!same).then(|| format!("it is at another host than {home}"));
    }
    // What is no URL at all, or nobody's address, breaks a rule of the card.
    let url = Url::parse(&interface.url).ok()?;
    if matches!(url.host_str(), Some("0.0.0.0" | "[::]")) {
        return None;
    }
    if home.scheme() == "https" && matches!(url.scheme(), "http" | "grpc") {
        return Some(format!(
            "it is not encrypted, though the agent is at {home}"
        ));
    }
    if is_grpc {
        return None;
    }
    if url.origin() != home.origin() {
        return Some(format!("it is elsewhere than {home}"));
    }
    let prefix = home.path().trim_end_matches('/');
    let below = url.path().strip_prefix(prefix);
    let fits = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    (!fits).then(|| format!("it lacks the prefix {prefix} of {home}"))
}

/// Whether what is for the origin of the card goes to an interface too.
fn is_at(interface: &AgentInterface, card: &Url) -> bool {
    let url = match interface.url.contains("://") {
        true => Url::parse(&interface.url),
        false => Url::parse(&format!("{}://{}", card.scheme(), interface.url)),
    };
    url.is_ok_and(|url| url.origin() == card.origin())
}

/// Asks for a task that does not exist: an agent that says so can be reached.
async fn call(
    visit: &Visit<'_>,
    what: &str,
    found: &Discovered,
    interface: &AgentInterface,
) -> Check {
    let (client, with_credentials) = match connect(visit, found, interface) {
        Ok(connected) => connected,
        Err(check) => return check.unwrap_or_else(|| uncalled(what, interface)),
    };
    let started = Instant::now();
    let request = GetTaskRequest::new(RandomIds.next());
    let answer = client.get_task(Call::client(), request).await;
    judge(what, answer, with_credentials, started.elapsed())
}

/// A client for this interface alone; an error without a check is one that nobody here speaks.
fn connect(
    visit: &Visit<'_>,
    found: &Discovered,
    interface: &AgentInterface,
) -> Result<(Client, bool), Option<Check>> {
    let what = named(interface);
    let mut card = found.card.clone();
    card.supported_interfaces = vec![interface.clone()];
    make_absolute(&mut card, &found.url);
    let is_at = card
        .supported_interfaces
        .iter()
        .all(|interface| is_at(interface, &found.url));
    let attachments = Attachments::new(&visit.ground.settings, &card);
    let attachments = attachments.map_err(|failure| Some(Check::failure(&what, failure)))?;
    let builder = ClientBuilder::new(visit.ground.egress.clone())
        .timeouts(Timeouts {
            total: Some(TIMEOUT),
            ..Timeouts::default()
        })
        .retry(RetryPolicy {
            retries: 0,
            ..RetryPolicy::default()
        });
    // The address of gRPC says nothing about TLS, that of the card does.
    let builder = match found.url.scheme() {
        "https" => builder.grpc_plaintext(false),
        _ => builder,
    };
    // Credentials go to whom the user has named only: a card has no say in that.
    let builder = attachments.attach(builder, &[found.url.to_string()]);
    match builder.build(card) {
        Ok(client) => Ok((client, is_at && attachments.prove_something())),
        Err(ConnectError::NoInterface { .. }) => Err(None),
        Err(error) => Err(Some(Check::error(&what, error.to_string()))),
    }
}

fn uncalled(what: &str, interface: &AgentInterface) -> Check {
    let (binding, version) = (&interface.protocol_binding, &interface.protocol_version);
    let message = format!("it is not called: {binding} {version} is not spoken here");
    Check::warning(what, message).hint("call it with a client that speaks it")
}

fn judge(
    what: &str,
    answer: Result<Task, A2aError>,
    with_credentials: bool,
    took: Duration,
) -> Check {
    let Err(error) = answer else {
        return Check::warning(what, "it gave a task that does not exist").took(took);
    };
    let failed = |hint: &str| Check::error(what, error.to_string()).hint(hint);
    match (cause(&error), error.kind) {
        (None, ErrorKind::TaskNotFound) => Check::ok(what, "it answers").took(took),
        (None, ErrorKind::Unauthenticated | ErrorKind::PermissionDenied) if with_credentials => {
            Check::warning(
                what,
                format!("it answers, and refuses the credential: {error}"),
            )
            .hint("see whether the key is right and of this agent")
            .took(took)
        }
        (None, ErrorKind::Unauthenticated | ErrorKind::PermissionDenied) => {
            Check::ok(what, "it answers, and asks for a credential")
                .hint("--api-key or A2ACLI_API_KEY looks further, at the origin of the card")
                .took(took)
        }
        (None, ErrorKind::VersionNotSupported) => {
            failed("the card names a version that the agent does not speak")
        }
        (None, _) => Check::error(
            what,
            format!("it does not say that a task is unknown, but: {error}"),
        )
        .hint(ELSEWHERE),
        (Some(Cause::BadAnswer), _) => failed(ELSEWHERE),
        (Some(Cause::FirstByteTimeout | Cause::IdleTimeout | Cause::TotalTimeout), _) => {
            failed("the agent does not answer in time")
        }
        (Some(_), _) => failed(
            "the card names an address that cannot be reached from here; in nuncio server.public_url decides it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BR-098.
    #[test]
    fn addresses_are_compared_with_that_of_the_card() {
        let of = |card: &str, binding, url: &str| {
            let home = home_of(&Url::parse(card).unwrap());
            misfit(&AgentInterface::new(url, binding), &home)
        };
        let at_root = "https://h.example/.well-known/agent-card.json";
        let below = "https://h.example/y/.well-known/agent.json";
        let bare = "https://h.example/y/card.json";
        for (card, binding, url) in [
            (at_root, Binding::JsonRpc, "https://h.example"),
            (at_root, Binding::JsonRpc, "https://h.example/agents/a"),
            (at_root, Binding::Grpc, "h.example:443"),
            (below, Binding::JsonRpc, "https://h.example/y"),
            (below, Binding::HttpJson, "https://h.example:443/y/z"),
            (bare, Binding::HttpJson, "https://h.example/y/z"),
            (at_root, Binding::JsonRpc, "relative"),
        ] {
            assert_eq!(of(card, binding, url), None, "{card} {url}");
        }
        for (card, binding, url, why) in [
            (
                at_root,
                Binding::JsonRpc,
                "http://h.example/",
                "not encrypted",
            ),
            (
                at_root,
                Binding::JsonRpc,
                "https://other.example/",
                "elsewhere",
            ),
            (
                at_root,
                Binding::JsonRpc,
                "https://h.example:8443/",
                "elsewhere",
            ),
            (
                below,
                Binding::JsonRpc,
                "https://h.example/agents/a",
                "prefix /y",
            ),
            (
                below,
                Binding::HttpJson,
                "https://h.example/yes",
                "prefix /y",
            ),
            (at_root, Binding::Grpc, "other.example:443", "another host"),
            (
                at_root,
                Binding::Grpc,
                "http://h.example:443",
                "not encrypted",
            ),
        ] {
            let told = of(card, binding, url).unwrap();
            assert!(told.contains(why), "{card} {url}: {told}");
        }
    }
}
