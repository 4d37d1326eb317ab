//! What a rule of tidy reports.

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path from the checkout's top folder.
    pub(crate) path: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// What is wrong and why it matters.
    pub(crate) reason: String,
}

/// Checks that exactly these lines are found, each with a reason that has this part.
#[cfg(test)]
#[track_caller]
pub(super) fn expect(findings: &[Finding], expected: &[(usize, &str)]) {
    let found: Vec<(usize, &str)> =
        findings.iter().map(|finding| (finding.line, finding.reason.as_str())).collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((line, reason), (expected_line, part)) in found.iter().zip(expected) {
        assert!(line == expected_line && reason.contains(part), "line {line}: {reason}");
    }
}
