//! What can be typed after `--runtime`.

use std::path::PathBuf;
use std::str::FromStr;

/// What is to run applications, and where it is: `node`, `bun=/opt/bun/bin/bun`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuntimeChoice {
    pub(crate) kind: RuntimeKind,
    /// Its program, where it is not the one on PATH.
    pub(crate) path: Option<PathBuf>,
}

/// Runtimes that the workers' library knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuntimeKind {
    Node,
    Bun,
}

impl RuntimeKind {
    /// The name of its program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Bun => "bun",
        }
    }
}

impl FromStr for RuntimeChoice {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, path) = text.split_once('=').map_or((text, None), |(name, path)| (name, Some(path)));
        let kind = [RuntimeKind::Node, RuntimeKind::Bun].into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or("write node, bun, or one of them with its path: node=/usr/bin/node")?;
        if path == Some("") {
            return Err("the path after = is empty");
        }
        Ok(Self { kind, path: path.map(PathBuf::from) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_a_name_with_or_without_its_path() {
        let choice = |kind, path: Option<&str>| RuntimeChoice { kind, path: path.map(PathBuf::from) };
        for (text, expected) in [
            ("node", Some(choice(RuntimeKind::Node, None))),
            ("bun=/a=b/bun", Some(choice(RuntimeKind::Bun, Some("/a=b/bun")))),
            ("node=", None),
            ("deno", None),
            ("/usr/bin/node", None),
        ] {
            assert_eq!(text.parse().ok(), expected, "{text}");
        }
    }
}
