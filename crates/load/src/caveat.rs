//! What a reader must know before believing figures: a code for programs, a sentence for people.
//!
//! Owns the codes. They are stable; a program that reacts to a caveat compares its code, never words of its text.

use std::fmt;

/// Something to know before believing figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caveat {
    /// What it is.
    pub code: CaveatCode,
    /// What it is said of, where there are several: `Run 2`, `With 8 connections: Run 1`. Empty for all.
    pub of: String,
    /// The sentence, without its subject.
    pub text: String,
}

macro_rules! codes {
    ($($(#[$meta:meta])* $code:ident = $name:literal,)*) => {
        /// What kind of thing a caveat says.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum CaveatCode {
            $($(#[$meta])* $code,)*
        }

        impl CaveatCode {
            /// The code in reports for programs.
            pub fn name(self) -> &'static str {
                match self {
                    $(CaveatCode::$code => $name,)*
                }
            }
        }
    };
}

codes! {
    /// The load itself was the limit: the rate is none of the server's.
    LoadLimited = "load_limited",
    /// The load sent requests late.
    LoadLate = "load_late",
    /// Arrivals waited for a connection.
    ConnectionsBusy = "connections_busy",
    /// A closed loop left out requests while it waited.
    Omission = "omission",
    /// No answer came for a while.
    Stall = "stall",
    /// Requests without a whole answer.
    NoAnswer = "no_answer",
    /// A server allowed fewer concurrent streams than were asked for.
    StreamsLimited = "streams_limited",
    /// A server ended connections with GOAWAY.
    Goaway = "goaway",
    /// Answers with a status that was not expected.
    UnexpectedStatus = "unexpected_status",
    /// It was interrupted.
    BrokenOff = "broken_off",
    /// It was given up, since nothing good came.
    GivenUp = "given_up",
    /// So few answers that high percentiles rest on a few of them.
    FewAnswers = "few_answers",
    /// Repetitions of one load differ.
    Disagreement = "disagreement",
    /// There was one run only.
    OneRun = "one_run",
    /// So few rounds that only large differences show, or none.
    FewRounds = "few_rounds",
    /// A server ran already: one start is in all rounds.
    RanAlready = "ran_already",
    /// CPU time and memory of a server are not known.
    UsageUnknown = "usage_unknown",
    /// A server was not warm yet.
    NotWarm = "not_warm",
    /// A server, or the machine, stood still.
    Pause = "pause",
    /// A server ended or was started anew within a run.
    Restarted = "restarted",
    /// The answers of a round do not count.
    Void = "void",
    /// A server failed in a round.
    RoundFailed = "round_failed",
    /// Servers answered with different statuses.
    StatusesDiffer = "statuses_differ",
    /// Servers were asked over different versions of HTTP.
    ProtocolsDiffer = "protocols_differ",
    /// Answers of two servers differ in size, heads included.
    SizesDiffer = "sizes_differ",
    /// Too few rounds are left for a verdict about something.
    TooFewPairs = "too_few_pairs",
    /// The servers had more descriptors than usual.
    Descriptors = "descriptors",
    /// Server and load share cores, or threads of one.
    SharedCores = "shared_cores",
    /// The control group allows less than all cores.
    CoreQuota = "core_quota",
    /// The machine has few cores.
    FewCores = "few_cores",
    /// It is a container or a virtual machine.
    SharedMachine = "shared_machine",
    /// The cores' clock follows their load.
    ClockGovernor = "clock_governor",
    /// Something else was at work.
    BusyMachine = "busy_machine",
    /// Time was taken by others on the machine's host.
    Steal = "steal",
    /// This program was built for debugging.
    DebugBuild = "debug_build",
    /// Certificates were not verified.
    Unverified = "unverified",
    /// An option of another tool is taken in another way.
    OtherTool = "other_tool",
    /// About the search for a highest rate.
    Search = "search",
    /// Anything else about how it was measured.
    Note = "note",
}

impl CaveatCode {
    /// A caveat of this kind, of all.
    pub fn says(self, text: impl Into<String>) -> Caveat {
        Caveat { code: self, of: String::new(), text: text.into() }
    }
}

impl Caveat {
    /// The same, said of something alone.
    #[must_use]
    pub fn of(mut self, what: &str) -> Caveat {
        self.of = if self.of.is_empty() { what.to_owned() } else { format!("{what}: {}", self.of) };
        self
    }
}

impl fmt::Display for Caveat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.of.is_empty() {
            write!(formatter, "{}: ", self.of)?;
        }
        formatter.write_str(&self.text)
    }
}
