//! Where large parts are: objects by task and hash, in files or at a service that speaks S3.

use std::collections::HashSet;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use nuncio_protocol::{Part, TaskId};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::PartsOptions;
use super::reference::{Reference, hex};
use crate::{Scope, StoreError, StoredPart};

/// Parts read at the same time, of one task.
const READS: usize = 8;

/// Parts that are known to be there, so that a snapshot does not send them again.
const KNOWN: usize = 10_000;

/// How long one call of a service may take, and all repetitions of it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The object that says whose the others beside it are.
const OWNER: &str = "owner";

/// The folder of a task's parts: a hash, for ids may be any text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Folder(String);

impl Folder {
    pub(super) fn of(scope: &Scope, task: &TaskId) -> Self {
        let mut digest = Sha256::new();
        for text in [
            scope.workspace.as_str(),
            scope.agent.as_str(),
            scope.caller.as_str(),
            task.as_str(),
        ] {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
        Self(hex(&digest.finalize()))
    }

    pub(super) fn path(&self) -> Path {
        Path::from_iter([&self.0[..1], &self.0])
    }

    fn of_part(&self, reference: &Reference) -> Path {
        self.path().join(hex(&reference.digest))
    }
}

/// A place for large parts.
#[derive(Debug)]
pub(super) struct Place {
    objects: Arc<dyn ObjectStore>,
    known: Mutex<HashSet<(Folder, Reference)>>,
}

impl Place {
    /// # Errors
    /// [`StoreError::Refused`] for a URL or options that do not do; neither is shown.
    pub(super) fn open(place: &str, options: &PartsOptions) -> Result<Self, StoreError> {
        let objects = match place.strip_prefix("file:") {
            Some(path) => files(FilePath::new(path.strip_prefix("//").unwrap_or(path)))?,
            None => service(place, options)?,
        };
        Ok(Self {
            objects,
            known: Mutex::default(),
        })
    }

    /// Keeps a part; on return it is on disk, or with the service.
    pub(super) async fn keep(
        &self,
        (scope, task): (&Scope, &TaskId),
        reference: Reference,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        let folder = Folder::of(scope, task);
        let key = (folder, reference);
        if self.known.lock().contains(&key) {
            return Ok(());
        }
        let folder = &key.0;
        let owner = (
            folder.path().join(OWNER),
            owner_text(scope, task).into_bytes().into(),
        );
        let part = (folder.of_part(&reference), PutPayload::from_bytes(bytes));
        for (path, payload) in [owner, part] {
            self.objects.put(&path, payload).await.map_err(told)?;
        }
        let mut known = self.known.lock();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(key);
        Ok(())
    }

    /// Reads parts, each with size and hash that are right.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if one is missing or is not what it was; [`StoreError::Unavailable`].
    pub(super) async fn read(
        &self,
        (scope, task): (&Scope, &TaskId),
        references: Vec<Reference>,
    ) -> Result<Vec<(Reference, Bytes)>, StoreError> {
        let folder = Folder::of(scope, task);
        let reads = references.into_iter().map(|reference| {
            let path = folder.of_part(&reference);
            async move {
                let found = self.objects.get(&path).await.map_err(told)?;
                let bytes = found.bytes().await.map_err(told)?;
                if Reference::of(&bytes) != reference {
                    return Err(another());
                }
                Ok((reference, bytes))
            }
        });
        let reads = futures_util::stream::iter(reads).buffer_unordered(READS);
        reads.try_collect().await
    }

    /// A part whose bytes are read when they are asked for.
    pub(super) fn open_part(
        &self,
        (scope, task): (&Scope, &TaskId),
        part: &Part,
        reference: &Reference,
    ) -> StoredPart {
        let path = Folder::of(scope, task).of_part(reference);
        let what = (reference.size, reference.digest);
        StoredPart::elsewhere(part, what, Arc::clone(&self.objects), path)
    }

    /// Removes all parts of a task.
    pub(super) async fn forget(&self, scope: &Scope, task: &TaskId) -> Result<(), StoreError> {
        self.remove(&Folder::of(scope, task)).await
    }

    /// Removes a folder, whose it is last: what is cut off is begun again.
    pub(super) async fn remove(&self, folder: &Folder) -> Result<(), StoreError> {
        self.known.lock().retain(|(of, _)| of != folder);
        let folder = &folder.path();
        let found: Vec<_> = self
            .objects
            .list(Some(folder))
            .try_collect()
            .await
            .map_err(told)?;
        let owner = folder.clone().join(OWNER);
        let parts = found.iter().map(|object| &object.location);
        for path in parts.filter(|path| **path != owner) {
            absent_is_fine(self.objects.delete(path).await)?;
        }
        if found.iter().any(|object| object.location == owner) {
            absent_is_fine(self.objects.delete(&owner).await)?;
        }
        Ok(())
    }

    /// The folders in one of 16 groups, and whose they are.
    pub(super) async fn owners(
        &self,
        group: u8,
    ) -> Result<Vec<(Folder, (Scope, TaskId))>, StoreError> {
        let group = Path::from(format!("{group:x}"));
        let listed = self
            .objects
            .list(Some(&group))
            .try_collect::<Vec<_>>()
            .await;
        let mut owners = Vec::new();
        for object in listed.map_err(told)? {
            let mut names = object.location.parts().skip(1);
            let (Some(folder), Some(OWNER)) = (names.next(), object.location.filename()) else {
                continue;
            };
            match self.objects.get(&object.location).await {
                Ok(found) => {
                    let owner = read_owner(&found.bytes().await.map_err(told)?);
                    let folder = Folder(folder.as_ref().to_owned());
                    owners.extend(owner.map(|owner| (folder, owner)));
                }
                // Another process is at it too.
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(told(error)),
            }
        }
        Ok(owners)
    }
}

fn owner_text(scope: &Scope, task: &TaskId) -> String {
    let whose = [
        scope.workspace.as_str(),
        scope.agent.as_str(),
        scope.caller.as_str(),
        task.as_str(),
    ];
    serde_json::json!(whose).to_string()
}

fn read_owner(text: &[u8]) -> Option<(Scope, TaskId)> {
    let [workspace, agent, caller, task]: [String; 4] = serde_json::from_slice(text).ok()?;
    let scope = Scope {
        workspace: workspace.into(),
        agent: agent.into(),
        caller: caller.into(),
    };
    Some((scope, task.into()))
}

/// A folder of this machine; what is written there is synced before it counts.
fn files(path: &FilePath) -> Result<Arc<dyn ObjectStore>, StoreError> {
    make_private(path)
        .map_err(|error| StoreError::Refused(format!("the folder for parts: {}", error.kind())))?;
    let files = LocalFileSystem::new_with_prefix(path).map_err(|_| unknown())?;
    Ok(Arc::new(
        files.with_fsync(true).with_automatic_cleanup(true),
    ))
}

pub(super) fn make_private(path: &FilePath) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn service(place: &str, options: &PartsOptions) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let (bucket, prefix) = place
        .strip_prefix("s3://")
        .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
        .filter(|(bucket, _)| !bucket.is_empty())
        .ok_or_else(unknown)?;
    let retry = RetryConfig {
        max_retries: 2,
        retry_timeout: PATIENCE,
        ..RetryConfig::default()
    };
    let client = ClientOptions::new().with_timeout(PATIENCE);
    let mut builder = AmazonS3Builder::new().with_client_options(client);
    for (key, value) in &options.service {
        let key = key.to_ascii_lowercase().parse().map_err(|_| {
            StoreError::Refused(format!(
                "\"{key}\" is no setting of a service that speaks S3"
            ))
        })?;
        builder = builder.with_config(key, value);
    }
    let service = builder
        .with_bucket_name(bucket)
        .with_retry(retry)
        .build()
        .map_err(|_| {
            StoreError::Refused("the settings of the service for parts do not fit".to_owned())
        })?;
    Ok(Arc::new(PrefixStore::new(service, prefix)))
}

fn unknown() -> StoreError {
    StoreError::Refused("parts are kept at file:PATH or s3://BUCKET/PREFIX".to_owned())
}

fn absent_is_fine(result: object_store::Result<()>) -> Result<(), StoreError> {
    match result {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(told(error)),
    }
}

pub(crate) fn another() -> StoreError {
    StoreError::Corrupt("a large part is not what was stored".to_owned())
}

/// The error as a caller sees it; logged with its cause, which has no credentials in it.
pub(crate) fn told(error: object_store::Error) -> StoreError {
    if let object_store::Error::NotFound { .. } = error {
        return StoreError::Corrupt("a large part is not where it was put".to_owned());
    }
    tracing::warn!(%error, "large parts cannot be reached");
    StoreError::Unavailable("large parts cannot be reached".to_owned())
}
