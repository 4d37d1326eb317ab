//! `limit` and `rate_limit`: what a person reads where their lines mean nothing, or something that cannot be meant.

use crate::limit::site;
use crate::memory::{Memory, text_of};

macro_rules! errors {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(site($text).errors());
        }
    };
}

errors!(
    every_wrong_value_of_a_limit,
    "limit
limit /a/*
limit 10
limit in_flight
limit in_flight 0
limit in_flight many
limit in_flight 1 queue 1000000
limit in_flight 1 queue 1 wait 0
limit in_flight 1 queue 1 wait 2h
limit in_flight 1 shed 200
limit priority highest
limit adaptive min
limit adaptive min 0
limit adaptive max 3 max 4
limit lag 1ms
limit in_fligth 3
limit min 3
limit rate 10
limit in_flight 1 in_flight 2
limit {
	in_flight 3 {
		queue 1
	}
	in_flight x
	queue y
}"
);
errors!(
    contradictions_of_a_limit,
    "limit /a/* queue 128
limit /b/* lag 70ms queue 128
limit /c/* in_flight 64 wait 1s
limit /d/* in_flight 64 queue 0 wait 1s
limit /e/* in_flight 64 adaptive
limit /f/* adaptive min 9 max 3
limit /g/* priority low shed 429
limit /h/* off in_flight 3
limit /i/* off
limit off
limit /j/* wait 1s"
);
errors!(
    what_is_said_twice_of_the_same_requests,
    "limit in_flight 3
limit * adaptive
limit /a/* priority high
limit /a/* priority low
limit /b/* in_flight 3
limit /b/* priority low
handle {
	limit {
		lag 70ms
	}
	limit in_flight 4
}
app a.mjs"
);
errors!(
    what_a_limit_of_an_app_cannot_be,
    "app /a/* a.mjs {
	limit /x in_flight 3
}
app /b/* a.mjs {
	limit in_flight 3 priority high
}
app /c/* a.mjs {
	limit in_flight 3
	limit off
}
app /d/* a.mjs {
	limit
}
app /e/* a.mjs {
	toobusy 70
}"
);
errors!(
    every_wrong_value_of_a_rate,
    "rate_limit
rate_limit /a/*
rate_limit 10
rate_limit 10/s
rate_limit r/s
rate_limit 0r/s
rate_limit 10r/y
rate_limit 10r/0s
rate_limit 2000000r/s
rate_limit 1r/1000d
rate_limit 10r/s burst
rate_limit 10r/s burst 0
rate_limit 1r/d burst 1000
rate_limit 10r/s brust 3
rate_limit 10r/s nodelay
rate_limit 10r/s burst 3 burst 4
rate_limit 10r/s by
rate_limit 10r/s by header
rate_limit 10r/s by header \"X A\"
rate_limit 10r/s by cookie \"a;b\"
rate_limit 10r/s by adress
rate_limit 10r/s by {nobody}
rate_limit 10r/s keys 3
rate_limit 10r/s zone \"a b\"
rate_limit 10r/s zone {host}
rate_limit 10r/s {
	burst 3
}"
);
errors!(
    every_wrong_option_of_a_zone,
    "rate_limit {
}
rate_limit {
	zone
	zone a
	zone \"a b\" {
		events 1
		window 1s
	}
	zone c {
		events 1
	}
	zone d {
		window 1s
	}
	zone e {
		events 0
		window soon
		key {nobody}
		match {
			pth /x
		}
		ipv6_prefix 56
		evnts 3
	}
	zone f {
		events 1
		events 2
		window 1s
	}
	zone g {
		events 1
		window 1s
	}
	zone g {
		events 2
		window 1s
	}
	distributed {
		read_interval 5s
	}
	storage file_system
	jitter 0.2
	log_key
	zones a
}"
);

#[test]
fn a_site_has_a_bounded_number_of_bounds() {
    let lines: String = (0..64).map(|number| format!("limit /{number} in_flight 3\n")).collect();
    insta::assert_snapshot!(site(&lines).errors());
}

#[test]
fn a_word_of_another_server_names_ours() {
    let lines = "limit_conn addr 10\nlimit_req zone=one\nerror_page 502 /502.html\nlimit_req_zone a b c";
    insta::assert_snapshot!(site(lines).errors());
}

#[test]
fn what_the_global_block_cannot_say_of_bounds() {
    let text = "{
	limit /x in_flight 3
	limit in_flight 3 priority low
	connections_per_address 0
	connections_per_address
	memory
	memory 1GiB files
	memory 1GiB files 2GiB
	memory 1GiB files 1KiB
	order rate_limit first
	rate_limit 10r/s
}
:80
respond a
";
    insta::assert_snapshot!(Memory::main(text).errors());
}

#[test]
fn a_lag_that_nobody_tells_is_said() {
    insta::assert_snapshot!(text_of(&site("limit lag 70ms\nreverse_proxy a:80").sound().warnings));
}
