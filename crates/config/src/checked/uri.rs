//! What `uri` changes.

use std::sync::Arc;

use super::{Expression, Template};

/// How `uri` changes the URI, besides `strip_prefix`, which is a [`Step::HandlePath`](super::Step::HandlePath).
#[derive(Debug, Clone, PartialEq)]
pub enum UriChange {
    /// Takes this end off the path, without regard to case.
    StripSuffix(String),
    /// Replaces a text in the path and in the query.
    Replace {
        /// What is replaced; not empty.
        find: String,
        /// The replacement: only characters that a path may have (RFC 3986 section 3.3).
        by: String,
        /// Occurrences that are replaced at most, in the path and in the query each.
        most: usize,
    },
    /// Replaces whatever fits an expression in the path as it is passed on, escapes included.
    PathRegexp {
        /// What is replaced.
        find: Arc<Expression>,
        /// The replacement; `$1` inserts a group. Its text has only characters that a path may have.
        by: Template,
    },
    /// Changes parameters of the query, in this order.
    Query(Vec<QueryChange>),
}

/// One change of a query's parameters. Names and values are without escapes.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryChange {
    /// Renames a parameter. A parameter that already has the new name is removed.
    Rename {
        /// The name now.
        from: String,
        /// The name then.
        to: String,
    },
    /// Replaces every value of a parameter by this one.
    Set {
        /// Its name.
        name: String,
        /// Its value.
        value: Template,
    },
    /// Adds a value beside those that are there.
    Add {
        /// Its name.
        name: String,
        /// The value.
        value: Template,
    },
    /// Replaces within values.
    Replace {
        /// The name of the parameter; `None` for all.
        name: Option<String>,
        /// What is replaced.
        find: Arc<Expression>,
        /// The replacement; `$1` inserts a group.
        by: Template,
    },
    /// Removes a parameter.
    Delete {
        /// Its name.
        name: String,
    },
}
