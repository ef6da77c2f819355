//! Large parts outside of the rows: whoever reads sees no difference.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt as _;
use nuncio_protocol::{
    Artifact, Message, Part, StreamResponse, TaskArtifactUpdateEvent, TaskState,
};
use nuncio_store::{
    Appended, Claim, Created, Imported, OpenOptions, PartPlace, PartsOptions, SqliteOptions,
    SqliteStore, Store, StoreError, StoredPart, Sweep, SweepKind, backup, check, open as open_url,
    restore,
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::contract::{Shared, contract};
use crate::draft::{Draft, at, lease, scope};

/// Parts of more bytes are kept outside.
const ABOVE: usize = 100;

async fn opened(folder: &Path, parts: PartsOptions) -> Shared {
    let url = format!("sqlite:{}", folder.join("nuncio.db").display());
    let mut options = OpenOptions::default();
    options.parts = parts;
    open_url(&url, options).await.unwrap()
}

fn parts_at(place: &str) -> PartsOptions {
    let mut parts = PartsOptions::default();
    parts.place = Some(place.to_owned());
    parts
}

fn in_files(folder: &Path) -> PartsOptions {
    let mut parts = parts_at(&format!("file:{}", folder.join("parts").display()));
    parts.above = ABOVE;
    parts
}

async fn open() -> Option<(Shared, TempDir)> {
    let folder = TempDir::new().unwrap();
    let store = opened(folder.path(), in_files(folder.path())).await;
    Some((store, folder))
}

contract!(open);

/// Bytes that no compression and no chance make of others.
fn bytes(seed: u8, size: usize) -> Vec<u8> {
    (0..size)
        .map(|n| (n * 31 + usize::from(seed) * 7 + n / 256) as u8)
        .collect()
}

/// Tells of an artifact with two large parts, a small one, and a URL that looks like ours.
fn tell_of_files(draft: &mut Draft, artifact: &str) {
    let parts = vec![
        Part::raw(bytes(1, 1_000)).with_media_type("image/png"),
        Part::raw(bytes(2, ABOVE)),
        Part::raw(bytes(3, 300_000)),
        Part::url("nuncio-part:url:x"),
    ];
    let piece = Artifact::new(artifact, parts);
    let update = TaskArtifactUpdateEvent::new(draft.id(), draft.context(), piece);
    draft.tell(StreamResponse::ArtifactUpdate(update));
}

/// A task whose message, status and artifact have large parts; ended, with a snapshot.
async fn filled(store: &Shared, id: &str) -> Draft {
    let mut draft = Draft::new("ada", id, 0);
    let photo = Part::raw(bytes(4, 2_000));
    draft.task.history[0].parts.push(photo);
    let first = StreamResponse::Task(draft.task.clone());
    draft.log[0] = nuncio_protocol::Event::new(Some(1), first);
    assert_eq!(store.create(draft.create()).await.unwrap(), Created::New);
    let mut question = Message::agent("q", vec![Part::raw(bytes(5, 3_000))]);
    question.task_id = Some(draft.id());
    draft.status(TaskState::Working, 1);
    tell_of_files(&mut draft, "files");
    let done = store.append(draft.append()).await.unwrap();
    assert_eq!(done, Appended::Done { epoch: 1 });
    draft
}

/// The files with content, beside those that say whose they are.
fn kept(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.join("parts")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() != "owner" {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

async fn is_whole(store: &Shared, draft: &Draft) {
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(*stored.task, draft.task);
    let events = store
        .events(&draft.scope, &draft.id(), 0, 100)
        .await
        .unwrap();
    assert_eq!(events.len(), draft.log.len());
    for (event, told) in events.iter().zip(&draft.log) {
        assert_eq!(event.response(), told.response());
    }
    let page = store.list(&draft.scope, &Default::default(), None, 9).await;
    let listed = page.unwrap().tasks.remove(0);
    let complete = store
        .complete(&draft.scope, Arc::unwrap_or_clone(listed))
        .await;
    assert_eq!(complete.unwrap(), draft.task);
}

/// What a stream of content gives, and whether it ends well.
async fn read(part: &StoredPart, range: Range<u64>) -> (Vec<u8>, Option<StoreError>) {
    let mut pieces = part.read(range).await.unwrap();
    let (mut all, mut error) = (Vec::new(), None);
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => all.extend(piece),
            Err(why) => error = Some(why),
        }
    }
    (all, error)
}

/// One part is read piece by piece, wherever it is kept, by whoever may; what is not what was stored
/// does not end well.
#[tokio::test]
async fn one_part_is_read_piece_by_piece() {
    let (store, folder) = open().await.unwrap();
    let draft = filled(&store, "t").await;
    let (scope, id) = (&draft.scope, draft.id());
    let artifact = |number| PartPlace::Artifact("files".into(), number);
    let message = PartPlace::Message(draft.task.history[0].message_id.clone(), 1);
    for (place, expected) in [
        (artifact(0), bytes(1, 1_000)),
        (artifact(1), bytes(2, ABOVE)),
        (artifact(2), bytes(3, 300_000)),
        (message, bytes(4, 2_000)),
    ] {
        let part = store.part(scope, &id, &place).await.unwrap().unwrap();
        let size = expected.len() as u64;
        assert_eq!(part.size, size, "{place:?}");
        assert_eq!(part.sha256[..], Sha256::digest(&expected)[..], "{place:?}");
        let (whole, error) = read(&part, 0..size).await;
        assert!(whole == expected && error.is_none(), "{place:?}: {error:?}");
        let (piece, error) = read(&part, 10..20).await;
        assert!(piece == expected[10..20] && error.is_none(), "{place:?}");
    }
    let first = store.part(scope, &id, &artifact(0)).await.unwrap();
    assert_eq!(first.unwrap().media_type.as_deref(), Some("image/png"));
    for nothing in [artifact(3), artifact(4), PartPlace::Artifact("x".into(), 0)] {
        assert!(store.part(scope, &id, &nothing).await.unwrap().is_none());
    }
    let stranger = Draft::new("bob", "t", 0).scope;
    let theirs = store.part(&stranger, &id, &artifact(0)).await.unwrap();
    assert!(theirs.is_none());

    let large = kept(folder.path()).into_iter();
    let large = large.max_by_key(|path| path.metadata().unwrap().len());
    std::fs::write(large.unwrap(), bytes(9, 300_000)).unwrap();
    let part = store.part(scope, &id, &artifact(2)).await.unwrap().unwrap();
    let (_, error) = read(&part, 0..part.size).await;
    assert!(matches!(error, Some(StoreError::Corrupt(_))), "{error:?}");
}

#[tokio::test]
async fn rows_have_no_large_parts_and_readers_do() {
    let (store, folder) = open().await.unwrap();
    let mut draft = filled(&store, "t").await;
    is_whole(&store, &draft).await;
    assert_eq!(kept(folder.path()).len(), 3, "each content once");
    // Whoever takes the run over gets the task whole.
    let mut other = lease("another");
    other.term = std::time::Duration::from_secs(60);
    let claimed = store
        .claim_expired(other, Claim::AllOthers, 9)
        .await
        .unwrap();
    assert_eq!(*claimed[0].stored.task, draft.task);
    let mut end = draft.complete(9);
    end.epoch = Some(claimed[0].stored.head.epoch);
    store.append(end).await.unwrap();
    is_whole(&store, &draft).await;
    store.close().await.unwrap();
    let database = std::fs::metadata(folder.path().join("nuncio.db")).unwrap();
    assert!(database.len() < 200_000, "{} bytes", database.len());
    // What the rows hold by themselves.
    let path = folder.path().join("nuncio.db");
    let bare = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    let stored = bare.load(&draft.scope, &draft.id()).await.unwrap().unwrap();
    let shown = format!("{:?}", stored.task.artifacts[0].parts);
    assert_eq!(shown.matches("nuncio-part:sha256:").count(), 2, "{shown}");
    bare.close().await.unwrap();
    // And a store that keeps nothing outside any more still reads it all.
    let mut parts = in_files(folder.path());
    parts.above = usize::MAX;
    let store = opened(folder.path(), parts).await;
    is_whole(&store, &draft).await;
    store.close().await.unwrap();
}

/// A part of another task cannot be had by naming it.
#[tokio::test]
async fn nobody_gets_a_part_by_its_name() {
    let (store, folder) = open().await.unwrap();
    filled(&store, "t").await;
    let path = folder.path().join("nuncio.db");
    let thief = |url: &str| {
        let mut draft = Draft::new("eve", "e", 0);
        draft.task.history[0].parts.push(Part::url(url));
        let first = StreamResponse::Task(draft.task.clone());
        draft.log[0] = nuncio_protocol::Event::new(Some(1), first);
        draft
    };
    let large = kept(folder.path());
    let name = large[0].file_name().unwrap().to_str().unwrap();
    let size = std::fs::metadata(&large[0]).unwrap().len();
    let mut draft = thief(&format!("nuncio-part:sha256:{name}:{size}"));
    store.create(draft.create()).await.unwrap();
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(*stored.task, draft.task, "the URL is a URL");
    store.close().await.unwrap();
    // Even a row that was written past us refers to the parts of its own task only.
    let bare = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    let mut forged = thief(&format!("nuncio-part:sha256:{name}:{size}"));
    forged.task.id = "forged".into();
    let first = StreamResponse::Task(forged.task.clone());
    forged.log[0] = nuncio_protocol::Event::new(Some(1), first);
    bare.create(forged.create()).await.unwrap();
    bare.close().await.unwrap();
    let store = opened(folder.path(), in_files(folder.path())).await;
    let read = store.load(&scope("eve"), &"forged".into()).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_is_not_as_it_was_is_not_served() {
    let (store, folder) = open().await.unwrap();
    let draft = filled(&store, "t").await;
    let parts = kept(folder.path());
    let content = std::fs::read(&parts[0]).unwrap();
    let mut changed = content.clone();
    changed[7] ^= 1;
    std::fs::write(&parts[0], changed).unwrap();
    let read = store.load(&draft.scope, &draft.id()).await.unwrap_err();
    assert!(read.to_string().contains("not what was stored"), "{read}");
    std::fs::remove_file(&parts[0]).unwrap();
    let read = store.load(&draft.scope, &draft.id()).await.unwrap_err();
    assert!(read.to_string().contains("not where it was put"), "{read}");
    std::fs::write(&parts[0], content).unwrap();
    is_whole(&store, &draft).await;
    store.close().await.unwrap();
}

/// By default SQLite has a folder of its own; there is none until there is a large part.
#[tokio::test]
async fn parts_are_beside_the_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let store = open_url(path.to_str().unwrap(), OpenOptions::default()).await;
    let store = store.unwrap();
    let draft = filled(&store, "t").await;
    is_whole(&store, &draft).await;
    let beside = std::fs::read_dir(folder.path().join("nuncio.db.parts")).unwrap();
    assert_eq!(beside.count(), 1, "one task with a part above 256 KiB");
    store.close().await.unwrap();
}

#[tokio::test]
async fn places_that_cannot_be_are_refused() {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite:{}", folder.path().join("nuncio.db").display());
    let mut unknown = parts_at("s3://bucket");
    unknown.service = vec![("secret_thing".to_owned(), "s3cret".to_owned())];
    for parts in [
        parts_at("ftp://host/x"),
        parts_at("s3://"),
        parts_at("file:/dev/null/x"),
        unknown,
    ] {
        let mut options = OpenOptions::default();
        options.parts = parts;
        let shown = format!("{options:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
        let refused = open_url(&url, options).await.unwrap_err();
        assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
        assert!(!refused.to_string().contains("s3cret"), "{refused}");
    }
}

/// A service that speaks S3, as `scripts/s3` starts one.
#[expect(
    clippy::disallowed_methods,
    reason = "scripts/s3 says by the environment where its service is"
)]
fn service() -> Option<String> {
    let address = std::env::var("NUNCIO_TEST_S3").ok();
    let skipped = std::env::var("SKIP_S3").is_ok_and(|skip| skip == "1");
    assert!(
        address.is_some() || skipped,
        "NUNCIO_TEST_S3 is not set: run it with scripts/s3, or set SKIP_S3=1 to do without"
    );
    address
}

fn at_service(address: &str, bucket: &str) -> PartsOptions {
    let mut parts = parts_at(&format!("s3://{bucket}/some/prefix"));
    parts.above = ABOVE;
    parts.service = [
        ("AWS_ENDPOINT_URL", address),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    parts
}

/// Makes a bucket, with the plainest of requests.
async fn make_bucket(address: &str, bucket: &str) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let host = address.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let xml = "<CreateBucketConfiguration><LocationConstraint>eu-central-1\
               </LocationConstraint></CreateBucketConfiguration>";
    let request = format!(
        "PUT /{bucket} HTTP/1.0\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n{xml}",
        xml.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains(" 200 "), "{answer}");
}

#[tokio::test]
async fn a_service_that_speaks_s3_keeps_parts() {
    let Some(address) = service() else {
        return;
    };
    let bucket = format!("parts-{}", std::process::id());
    make_bucket(&address, &bucket).await;
    let folder = TempDir::new().unwrap();
    let store = opened(folder.path(), at_service(&address, &bucket)).await;
    let mut draft = filled(&store, "t").await;
    is_whole(&store, &draft).await;
    store.append(draft.complete(9)).await.unwrap();
    store.close().await.unwrap();
    let store = opened(folder.path(), at_service(&address, &bucket)).await;
    is_whole(&store, &draft).await;
    let place = PartPlace::Artifact("files".into(), 2);
    let part = store.part(&draft.scope, &draft.id(), &place).await;
    let part = part.unwrap().unwrap();
    for range in [0..300_000, 299_000..300_000] {
        let expected = &bytes(3, 300_000)[range.start as usize..];
        let (piece, error) = read(&part, range).await;
        assert!(piece == expected && error.is_none(), "{error:?}");
    }
    store.close().await.unwrap();
    // One that is away is something to try again, and nothing is stored without its parts.
    let away = opened(folder.path(), at_service("http://127.0.0.1:1", &bucket)).await;
    let read = away.load(&draft.scope, &draft.id()).await.unwrap_err();
    assert!(matches!(read, StoreError::Unavailable(_)), "{read:?}");
    let mut second = Draft::new("ada", "second", 0);
    away.create(second.create()).await.unwrap();
    tell_of_files(&mut second, "files");
    let refused = away.append(second.append()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    let stored = away
        .load(&second.scope, &second.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.head.last, 1);
    away.close().await.unwrap();
}

/// With its task a part goes; what a crash has left without a task goes too, but not soon.
#[tokio::test]
async fn parts_go_with_their_task() {
    let (store, folder) = open().await.unwrap();
    let mut draft = filled(&store, "t").await;
    store.append(draft.complete(9)).await.unwrap();
    let kept_one = filled(&store, "stays").await;
    let stray = folder.path().join("parts/f/fstray");
    std::fs::create_dir_all(&stray).unwrap();
    std::fs::write(stray.join("part"), "x").unwrap();
    std::fs::write(stray.join("owner"), r#"["w","a","ada","not there"]"#).unwrap();
    assert_eq!(kept(folder.path()).len(), 7);
    let sweep = Sweep {
        kind: SweepKind::Expire,
        before: at(100),
        from: None,
        limit: 10,
    };
    let swept = store.sweep(sweep).await.unwrap();
    assert_eq!(swept.tasks, [(draft.scope.clone(), draft.id())]);
    assert_eq!(kept(folder.path()).len(), 4, "three and the stray");
    for _ in 0..3 {
        while store.reclaim().await.unwrap() {}
    }
    assert!(stray.join("part").exists(), "its task may be about to come");
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(3_601)).await;
    tokio::time::resume();
    while store.reclaim().await.unwrap() {}
    assert!(!stray.join("part").exists() && !stray.join("owner").exists());
    is_whole(&store, &kept_one).await;
    store.close().await.unwrap();
}

/// Whoever takes tasks from here to elsewhere takes them whole.
#[tokio::test]
async fn tasks_move_with_their_parts() {
    let (store, _folder) = open().await.unwrap();
    let draft = filled(&store, "t").await;
    let whole = store.export(None, 9).await.unwrap().pop().unwrap();
    assert_eq!(*whole.task, draft.task);
    let log = whole.log.as_ref().unwrap();
    assert_eq!(log[0].response(), draft.log[0].response());
    let (other, folder) = open().await.unwrap();
    assert_eq!(other.import(whole).await.unwrap(), Imported::New);
    is_whole(&other, &draft).await;
    assert_eq!(kept(folder.path()).len(), 3);
    for store in [store, other] {
        store.close().await.unwrap();
    }
}

/// A backup under way has the parts too, and a check looks at them.
#[tokio::test]
async fn copies_and_checks_know_of_parts() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let store = open_url(path.to_str().unwrap(), OpenOptions::default()).await;
    let store = store.unwrap();
    let draft = filled(&store, "t").await;
    let copy = folder.path().join("copy.db");
    backup(&path, &copy).unwrap();
    store.close().await.unwrap();
    let report = check(&copy).unwrap();
    assert_eq!((report.problems, report.parts_elsewhere), (Vec::new(), 0));
    let elsewhere = folder.path().join("elsewhere");
    std::fs::rename(folder.path().join("copy.db.parts"), &elsewhere).unwrap();
    assert_eq!(check(&copy).unwrap().parts_elsewhere, 1);
    std::fs::rename(&elsewhere, folder.path().join("copy.db.parts")).unwrap();

    let restored = folder.path().join("other").join("nuncio.db");
    assert_eq!(restore(&copy, &restored, false).unwrap().tasks, 1);
    let store = open_url(restored.to_str().unwrap(), OpenOptions::default()).await;
    let store = store.unwrap();
    is_whole(&store, &draft).await;
    store.close().await.unwrap();

    let mut folders = vec![folder.path().join("copy.db.parts")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => std::fs::write(path, "something else").unwrap(),
            }
        }
    }
    let damaged = check(&copy).unwrap().problems;
    assert_eq!(damaged, ["task t: a large part is not what was stored"]);
    let refused = restore(&copy, folder.path().join("third.db"), false).unwrap_err();
    assert!(refused.to_string().contains("damaged"), "{refused}");
}
