//! `cargo xtask generate`: the protobuf messages of `proto/` as committed Rust files, and their
//! descriptors for server reflection. Needs no `protoc`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use prost::Message as _;
use prost_types::FileDescriptorSet;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The files that are compiled, below `proto/`.
const PROTOS: &[&str] = &[
    "lf/a2a/v1/a2a.proto",
    "a2a/v1/a2a.proto",
    "google/rpc/status.proto",
    "google/rpc/error_details.proto",
];

/// What server reflection shows: the two services, with whatever they import.
const REFLECTED: &[&str] = &["lf/a2a/v1/a2a.proto", "a2a/v1/a2a.proto"];

/// Where the files go, below the repository.
const GENERATED: &str = "crates/nuncio-protocol/src/grpc/generated";

/// Fields of bytes that are cut out of the buffer instead of copied.
const SHARED_BYTES: &[&str] = &[".lf.a2a.v1.Part", ".a2a.v1.FilePart"];

const HEADER: &str = "// Made by `cargo xtask generate` from proto/; not to be edited.\n\n";

/// Writes the files, and removes what is no longer made.
///
/// # Errors
/// A proto that does not compile, or a file that cannot be written.
pub(crate) fn write() -> Result<()> {
    let folder = repository().join(GENERATED);
    let made = made()?;
    for stale in committed(&folder)?
        .keys()
        .filter(|name| !made.contains_key(*name))
    {
        std::fs::remove_file(folder.join(stale))?;
    }
    for (name, content) in &made {
        std::fs::write(folder.join(name), content)?;
    }
    Ok(())
}

/// Compares the committed files with what would be written.
///
/// # Errors
/// The names of the files that differ.
pub(crate) fn check() -> Result<()> {
    let (made, committed) = (made()?, committed(&repository().join(GENERATED))?);
    let names = made.keys().chain(committed.keys());
    let mut differing: Vec<&String> = names
        .filter(|name| made.get(*name) != committed.get(*name))
        .collect();
    differing.sort();
    differing.dedup();
    if differing.is_empty() {
        return Ok(());
    }
    Err(format!("{GENERATED} is out of date: {differing:?}; run `cargo xtask generate`").into())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the repository")
        .to_owned()
}

/// The generated files of a folder; `mod.rs` is written by hand.
fn committed(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "mod.rs" {
            found.insert(name, std::fs::read(entry.path())?);
        }
    }
    Ok(found)
}

fn made() -> Result<BTreeMap<String, Vec<u8>>> {
    let compiled = compile(PROTOS)?;
    let mut config = prost_build::Config::new();
    config
        .btree_map(["."])
        .bytes(SHARED_BYTES)
        .disable_comments(["."]);
    let modules: Vec<(prost_build::Module, _)> = compiled
        .file
        .into_iter()
        .map(|file| {
            (
                prost_build::Module::from_protobuf_package_name(file.package()),
                file,
            )
        })
        .collect();
    let mut made: BTreeMap<String, Vec<u8>> = config
        .generate(modules)?
        .into_iter()
        // Of `google.protobuf`, which is in prost-types.
        .filter(|(_, code)| !code.is_empty())
        .map(|(module, code)| {
            let name = module.to_file_name_or("main");
            (name, format!("{HEADER}{code}").into_bytes())
        })
        .collect();
    let descriptors = compile(REFLECTED)?.encode_to_vec();
    made.insert("descriptors.bin".to_owned(), descriptors);
    Ok(made)
}

/// The descriptors of files and of all they import, without comments and positions.
fn compile(files: &[&str]) -> Result<FileDescriptorSet> {
    let mut compiler = protox::Compiler::new([repository().join("proto")])?;
    compiler.include_imports(true).include_source_info(false);
    compiler.open_files(files)?;
    Ok(compiler.file_descriptor_set())
}
