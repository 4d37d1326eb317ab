//! The architectures that programs are built for, and what everybody calls them.

use crate::Outcome;
use crate::workspace::WrongUsage;

/// One of those that onehop is built for; all are Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    /// Every one.
    pub(super) const ALL: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];

    /// By the name that people type, which is Rust's.
    pub(super) fn named(name: &str) -> Outcome<Architecture> {
        let found = Self::ALL.into_iter().find(|architecture| architecture.name() == name.trim());
        found.ok_or_else(|| WrongUsage(format!("{name}: known architectures are x86_64 and aarch64")).into())
    }

    /// That of the machine on which this runs.
    pub(super) fn of_this_machine() -> Option<Architecture> {
        Self::named(std::env::consts::ARCH).ok()
    }

    /// Rust's name, and the kernel's.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The target of the static build.
    pub(super) fn triple(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }

    /// Debian's name.
    pub(super) fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Node's `process.arch`.
    pub(super) fn node(self) -> &'static str {
        match self {
            Self::X86_64 => "x64",
            Self::Aarch64 => "arm64",
        }
    }

    /// `e_machine` of its programs (System V ABI, ELF header).
    pub(super) fn elf_machine(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        }
    }
}
