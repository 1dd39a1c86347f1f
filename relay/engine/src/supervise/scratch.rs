//! A private directory for the control socket, gone when its owner is, however that ended.
//!
//! A killed process removes nothing, and in a container every supervisor has the same process id. So the owner holds
//! a lock on its directory, and each new owner removes the directories of the same user that nobody holds.

#![forbid(unsafe_code)]

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{env, process};

const PREFIX: &str = "voicecluster-relay-";

/// The directory, in the temporary one. Dropping it removes it.
pub(crate) struct Scratch {
    path: PathBuf,
    /// Holds the lock.
    _held: File,
}

impl Scratch {
    /// Makes a directory for this user only, and removes abandoned ones.
    pub(crate) fn new() -> io::Result<Self> {
        Self::within(&env::temp_dir())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn within(parent: &Path) -> io::Result<Self> {
        for attempt in 0..100 {
            let path = parent.join(format!("{PREFIX}{}-{attempt}", process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                result => result?,
            }
            // Another one that is just starting may have taken it for abandoned.
            if let Some(held) = locked(&path).filter(|_| path.is_dir()) {
                remove_abandoned(parent, held.metadata()?.uid());
                return Ok(Self { path, _held: held });
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in the temporary directory harms nobody, and the next one removes it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn locked(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    directory.try_lock().ok().map(|()| directory)
}

fn remove_abandoned(parent: &Path, user: u32) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_ours = entry
            .metadata()
            .is_ok_and(|found| found.is_dir() && found.uid() == user);
        if is_named
            && is_ours
            && let Some(_held) = locked(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_lasts_as_long_as_its_owner_and_abandoned_ones_do_not() {
        let parent = env::temp_dir().join(format!("scratch-test-{}", process::id()));
        let abandoned = parent.join(format!("{PREFIX}1-0"));
        let foreign = parent.join("somebody-elses");
        for directory in [&abandoned, &foreign] {
            fs::create_dir_all(directory).expect("directory");
        }
        let first = Scratch::within(&parent).expect("directory");
        let second = Scratch::within(&parent).expect("directory");
        assert!(!abandoned.exists() && foreign.exists());
        let (one, other) = (first.path().to_path_buf(), second.path().to_path_buf());
        assert!(one.is_dir() && other.is_dir() && one != other);
        drop(first);
        assert!(!one.exists() && other.is_dir());
        drop(second);
        fs::remove_dir_all(parent).expect("removed");
    }
}
