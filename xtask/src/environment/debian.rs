//! A Debian with a newer Python than this system has, installed into `target/`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::run::{output, run};
use super::workspace;

/// The release that is installed; its Python is 3.13.
const RELEASE: &str = "trixie";

/// Files of this system that downloads need in the other one as well, where there are any.
const SHARED_FILES: [&str; 3] = ["etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt", "etc/pip.conf"];

/// Runs a program in the Debian at `$1`, which sees the folders `$2` and `$3` under their own paths. In a mount namespace of its
/// own, so that no mount is left when it ends.
const ENTER: &str = r#"set -e
root=$1
for folder in "$2" "$3"; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
done
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
shift 3
exec chroot "$root" "$@"
"#;

/// Returns the Python of a Debian in `target/`, which is installed if it is missing: the words that start programs in it, and
/// its program.
pub(crate) fn python() -> Result<(Vec<OsString>, PathBuf)> {
    let root = workspace::root().join("target").join(format!("debian-{RELEASE}"));
    let installed = root.join("installed");
    if !installed.exists() {
        install(&root)?;
        fs::write(installed, "")?;
    }
    let mut launcher: Vec<OsString> =
        ["unshare", "--mount", "sh", "-c", ENTER, "sh"].map(OsString::from).into();
    launcher.extend([root.into(), workspace::root().into(), workspace::target().into()]);
    Ok((launcher, "/usr/bin/python3".into()))
}

fn install(root: &Path) -> Result<()> {
    let is_there = |program: &str| {
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    if !is_there("debootstrap") {
        bail!(
            "a Debian with it cannot be installed into target/ either: there is no debootstrap, which a package of that name has"
        );
    }
    if output(Command::new("id").arg("-u"))?.trim() != "0" {
        bail!(
            "a Debian with it cannot be installed into target/ either: debootstrap, mount and chroot have to run as root"
        );
    }
    if root.exists() {
        fs::remove_dir_all(root).with_context(|| format!("cannot remove {}", root.display()))?;
    }
    println!("Installing Debian {RELEASE} into {}", root.display());
    let packages = "--include=python3,python3-venv,ca-certificates";
    let mut debootstrap = Command::new("debootstrap");
    run(debootstrap.args(["--variant=minbase", packages, RELEASE]).arg(root).stdout(Stdio::null()))?;
    for file in SHARED_FILES {
        let (from, to) = (Path::new("/").join(file), root.join(file));
        if from.exists() {
            fs::create_dir_all(to.parent().unwrap_or(root))?;
            fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        }
    }
    Ok(())
}
