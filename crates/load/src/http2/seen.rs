//! What a run saw of streams, and what a reader must know of it.
//!
//! Facts, and the two sentences that follow from them.

use std::collections::BTreeMap;

use super::code_name;
use crate::caveat::{Caveat, CaveatCode};

/// What was seen of streams, those of the warm-up among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Http2Seen {
    /// Concurrent streams of a connection that were asked for.
    pub streams: u32,
    /// Streams that were opened.
    pub streams_opened: u64,
    /// The fewest concurrent streams that a server allowed on a connection (RFC 9113 section 6.5.2), where that is less
    /// than was asked for.
    pub streams_allowed: Option<u32>,
    /// RST_STREAM frames of servers that ended a request, by error code.
    pub resets: BTreeMap<u32, u64>,
    /// GOAWAY frames of servers, by error code.
    pub goaways: BTreeMap<u32, u64>,
    /// Requests that were sent again, because a server took them back with GOAWAY and NO_ERROR.
    pub resent: u64,
}

impl Http2Seen {
    /// Adds another's.
    pub fn merge(&mut self, other: &Http2Seen) {
        self.streams = self.streams.max(other.streams);
        self.streams_opened += other.streams_opened;
        self.streams_allowed = self.streams_allowed.into_iter().chain(other.streams_allowed).min();
        self.resent += other.resent;
        for (all, counts) in [(&mut self.resets, &other.resets), (&mut self.goaways, &other.goaways)] {
            for (code, count) in counts {
                *all.entry(*code).or_default() += count;
            }
        }
    }

    /// What a reader must know of the streams.
    pub fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if let Some(allowed) = self.streams_allowed {
            caveats.push(CaveatCode::StreamsLimited.says(format!(
                "The server allows {allowed} concurrent streams on a connection (SETTINGS_MAX_CONCURRENT_STREAMS): {} \
                 were asked for, and no more than {allowed} were open at a time.",
                self.streams
            )));
        }
        if !self.goaways.is_empty() {
            let resent = match self.resent {
                0 => String::new(),
                1 => "; one request that it had not processed was sent again on another".to_owned(),
                resent => {
                    format!("; {resent} requests that it had not processed were sent again on others")
                }
            };
            caveats.push(CaveatCode::Goaway.says(format!(
                "The server ended connections with GOAWAY ({}){resent}: it may limit the requests of a connection.",
                code_list(&self.goaways)
            )));
        }
        caveats
    }
}

/// Error codes with their counts: `REFUSED_STREAM: 12`.
pub fn code_list(codes: &BTreeMap<u32, u64>) -> String {
    let list = codes.iter().map(|(code, number)| format!("{}: {number}", code_name(*code)));
    list.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_said_of_streams_is_a_caveat() {
        assert!(Http2Seen::default().caveats().is_empty());
        let mut seen = Http2Seen { streams: 200, streams_allowed: Some(128), ..Http2Seen::default() };
        seen.merge(&Http2Seen {
            streams: 200,
            streams_allowed: Some(100),
            resent: 3,
            ..Http2Seen::default()
        });
        seen.merge(&Http2Seen { goaways: [(0, 2), (11, 1)].into(), ..Http2Seen::default() });
        let said: Vec<String> =
            seen.caveats().iter().map(|caveat| format!("{}: {caveat}", caveat.code.name())).collect();
        let expected = [
            "streams_limited: The server allows 100 concurrent streams on a connection \
             (SETTINGS_MAX_CONCURRENT_STREAMS): 200 were asked for, and no more than 100 were open at a time.",
            "goaway: The server ended connections with GOAWAY (NO_ERROR: 2, ENHANCE_YOUR_CALM: 1); 3 requests that it \
             had not processed were sent again on others: it may limit the requests of a connection.",
        ];
        assert_eq!(said, expected);
    }
}
