//! `reverse_proxy`: what a person reads where its lines mean nothing, or something that cannot be meant.

use crate::memory::{Memory, text_of};
use crate::proxy::site;

macro_rules! errors {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(site($text).errors());
        }
    };
}

macro_rules! warnings {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(text_of(&site($text).sound().warnings));
        }
    };
}

errors!(
    a_proxy_without_an_upstream,
    "reverse_proxy
reverse_proxy /a/*
reverse_proxy @nobody a:80
reverse_proxy /b/* {
	lb_policy first
}
reverse_proxy /c/* {
	to
}"
);
errors!(
    what_ambiguous_headers_cannot_be,
    "reverse_proxy /a/* a:80 {
	ambiguous_headers on
	ambiguous_headers
	ambiguous_header pass
	underscores_in_headers on
	ignore_invalid_headers off
}"
);
errors!(
    what_cannot_be_an_upstream,
    "reverse_proxy /a/* \"\"
reverse_proxy /b/* http://a/
reverse_proxy /c/* http://a:80/api?x=1
reverse_proxy /d/* a:3000/api
reverse_proxy /e/* http://a:443
reverse_proxy /f/* https://a:80
reverse_proxy /g/* wss://a
reverse_proxy /h/* ftp://a
reverse_proxy /i/* unix:///run/a.sock
reverse_proxy /j/* unix/
reverse_proxy /k/* a:0
reverse_proxy /l/* a:http
reverse_proxy /m/* a:8003-8000
reverse_proxy /n/* a:8000-
reverse_proxy /o/* 3000
reverse_proxy /p/* 10.0.0.256:80
reverse_proxy /q/* a_b/c:80
reverse_proxy /r/* \"a b:80\"
reverse_proxy /s/* bücher.example:80
reverse_proxy /t/* a:1:2
reverse_proxy /u/* https://me:secret@a
reverse_proxy /v/* udp/a:53
reverse_proxy /w/* http://
reverse_proxy /x/* a:1-65535
reverse_proxy /y/* unix//1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890/123456"
);
errors!(
    what_an_upstream_is_going_to_be,
    "reverse_proxy /b/* srv+http://a
reverse_proxy /c/* tcp6/a:80
reverse_proxy /e/* unix/@abstract
reverse_proxy /f/* unix/{host}.sock
reverse_proxy /g/* {host}:8000-8001"
);
errors!(
    placeholders_that_make_no_upstream,
    "reverse_proxy /a/* https://{host}
reverse_proxy /b/* {labels.0}.internal
reverse_proxy /c/* \"{host} :80\"
reverse_proxy /d/* {host}:x
reverse_proxy /e/* {upstream_hostport}"
);
errors!(
    upstreams_that_cannot_stand_side_by_side,
    "reverse_proxy /a/* https://a http://b
reverse_proxy /b/* https://a b:443
reverse_proxy /c/* http://a b:80
reverse_proxy /d/* http://a {
	transport http {
		tls_server_name b
	}
}"
);
errors!(
    every_wrong_value_of_a_proxy_at_once,
    "reverse_proxy a:80 {
	pool min
	lb_policy
	lb_retries many
	lb_try_duration soon
	lb_try_interval 400d
	lb_retry_match
	health_uri \"/a b\"
	health_port 0
	health_upstream a
	health_interval 1
	health_timeout -1s
	health_status 99
	health_body (
	health_passes 99999
	health_fails x
	health_headers
	health_method \"A B\"
	health_request_body
	health_follow_redirects yes
	fail_duration 1us
	max_fails -1
	unhealthy_status 2xx 6xx
	unhealthy_latency x
	unhealthy_request_count x
	header_up
	header_up ?X a
	header_up X a b c
	header_up X ( b
	header_down ?X a
	header_down X {nobody}
	flush_interval 1
	request_buffers much
	response_buffers
	stream_timeout 10
	stream_close_delay
	trusted_proxies
	verbose_logs on
	transport
	transport https
	worker 3
	lb_polcy first
	keepalive 1m
	buffer_requests
	websocket
	@error status 5xx
}"
);
errors!(
    every_wrong_value_of_a_transport_at_once,
    "reverse_proxy a:80 {
	transport http {
		keepalive never
		keepalive_interval
		keepalive_idle_conns many
		keepalive_idle_conns_per_host 99999
		dial_timeout -1s
		dial_fallback_delay -x
		read_timeout x
		write_timeout 1us
		response_header_timeout 400d
		expect_continue_timeout
		max_conns_per_host x
		max_response_header 10
		compression maybe
		resolvers dns.example
		versions 4
		read_buffer x
		tls on
		tls_client_auth client.pem nowhere.key
		tls_except_ports https
		tls_insecure_skip_verify yes
		tls_server_name a:443
		tls_timeout x
		tls_trust_pool files ca.pem
		tls_trusted_ca_certs api
		keepalive_idle_connections 5
		max_idle_conns_per_host 5
		pool min 4
	}
}"
);
errors!(
    what_a_proxy_is_going_to_have,
    "reverse_proxy a:80 {
	dynamic a {
		name a
	}
	handle_response {
		respond hi
	}
	replace_status 200
	copy_response
	copy_response_headers
	method GET
	rewrite /new
}
reverse_proxy /b/* a:80 {
	transport fastcgi {
		split .php
	}
}
reverse_proxy /c/* a:80 {
	transport http {
		versions 1.1 3
		tls_renegotiation once
		tls_curves x25519
		proxy_protocol v2
		local_address 10.0.0.1
		forward_proxy_url http://proxy
		network_proxy none
		tls_client_auth app.internal
		tls_trust_pool inline x
		resolvers tcp/192.0.2.53
	}
}
php_fastcgi a:9000
forward_auth a:80"
);
errors!(
    what_a_policy_cannot_be,
    "reverse_proxy /a/* a:1 b:2 {
	lb_policy round_robbin
}
reverse_proxy /b/* a:1 b:2 {
	lb_policy first second
}
reverse_proxy /c/* a:1 b:2 {
	lb_policy random_choose
}
reverse_proxy /d/* a:1 b:2 {
	lb_policy random_choose 1
}
reverse_proxy /e/* a:1 b:2 {
	lb_policy weighted_round_robin
}
reverse_proxy /f/* a:1 b:2 {
	lb_policy weighted_round_robin 0 0
}
reverse_proxy /g/* a:1 b:2 {
	lb_policy weighted_round_robin 1 2 3
}
reverse_proxy /h/* a:1 b:2 {
	lb_policy header
}
reverse_proxy /i/* a:1 b:2 {
	lb_policy header \"X User\"
}
reverse_proxy /j/* a:1 b:2 {
	lb_policy query
}
reverse_proxy /k/* a:1 b:2 {
	lb_policy cookie a b c
}
reverse_proxy /l/* a:1 b:2 {
	lb_policy cookie \"a;b\"
}
reverse_proxy /m/* a:1 b:2 {
	lb_policy cookie lb secret {
		max_age 0
	}
}
reverse_proxy /n/* a:1 b:2 {
	lb_policy cookie {
		fallback first
		fallback random
	}
}
reverse_proxy /o/* a:1 b:2 {
	lb_policy header X-User {
		max_age 1h
	}
}
reverse_proxy /p/* a:1 b:2 {
	lb_policy header X-User {
		fallback weighted_round_robin 1
	}
}
reverse_proxy /q/* a:1 b:2 {
	lb_policy ewma
}
reverse_proxy /r/* a:1 b:2 {
	lb_policy cookie lb \"\"
}
reverse_proxy /s/* a:1 b:2 {
	lb_policy least_conn {
		fallback first
	}
}
reverse_proxy /t/* a:1 b:2 {
	lb_retries 2
	lb_retry_match @post
}
reverse_proxy /u/* a:1 b:2 {
	lb_retries 2
	lb_retry_match not file /a
}
reverse_proxy /v/* a:1 b:2 {
	lb_retries 2
	lb_retry_match expression `true`
}"
);
errors!(
    contradictions_of_a_pool,
    "reverse_proxy /a/* a:80 {
	pool min 4 max 3
}
reverse_proxy /b/* a:80 {
	pool min 4
	transport http {
		max_conns_per_host 3
	}
}
reverse_proxy /c/* a:80 {
	pool max 64
	transport http {
		max_conns_per_host 32
	}
}
reverse_proxy /d/* a:80 {
	pool idle 30m
	transport http {
		keepalive 10m
	}
}
reverse_proxy /e/* a:80 {
	pool min 1
	transport http {
		keepalive off
	}
}
reverse_proxy /f/* a:80 {
	pool min 8
	transport http {
		keepalive_idle_conns_per_host 4
	}
}
reverse_proxy /g/* a:80 b:80 c:80 {
	pool min 8
	transport http {
		keepalive_idle_conns 20
	}
}
reverse_proxy /h/* {host}:80 {
	pool min 1
}
reverse_proxy /i/* a:80 {
	pool min 1 min 2
}
reverse_proxy /j/* a:80 {
	pool size 4
}
reverse_proxy /k/* a:80 {
	pool max 0
}
reverse_proxy /l/* a:80 {
	pool
}
reverse_proxy /m/* a:80 {
	pool min 2
	pool max 3
}
reverse_proxy /n/* a:80 {
	pool idle 1s
	transport http {
		keepalive off
	}
}"
);
errors!(
    contradictions_of_health,
    "reverse_proxy /a/* a:80 {
	health_uri /a
	health_path /b
}
reverse_proxy /b/* a:80 {
	health_uri /a
	health_port 81
	health_upstream b:80
}
reverse_proxy /c/* a:80 {
	health_uri /a
	health_method HEAD
	health_body ok
}
reverse_proxy /d/* {host}:80 {
	health_uri /a
}
reverse_proxy /d2/* https://a:443 {
	health_uri /a
	transport http {
		tls_server_name {host}
	}
}
reverse_proxy /e/* unix//run/a.sock {
	health_port 81
}
reverse_proxy /f/* a:80 {
	health_uri http://a/health
	health_headers {
		Connection close
	}
}
reverse_proxy /g/* a:80 {
	health_uri /a
	health_uri /b
}"
);
errors!(
    contradictions_of_tls,
    "reverse_proxy /a/* https://a {
	transport http {
		tls_trust_pool file ca.pem
		tls_trusted_ca_certs more.pem
	}
}
reverse_proxy /b/* unix//run/a.sock {
	transport http {
		tls
	}
}
reverse_proxy /b2/* unix//run/a.sock {
	transport http {
		tls_server_name {host}
	}
}
reverse_proxy /c/* a {
	transport http {
		tls
		tls
	}
	transport http
}"
);
errors!(
    a_word_of_another_server_names_ours,
    "proxy_pass http://a
proxy / a:80
pool min 4
reverse_proxi a:80"
);
warnings!(
    what_of_a_proxy_has_no_effect_is_said,
    "reverse_proxy /a/* a:80 {
	max_fails 3
	unhealthy_latency 1s
}
reverse_proxy /b/* a:80 {
	health_interval 5s
}
reverse_proxy /c/* a:80 {
	lb_try_interval 1s
}
reverse_proxy /d/* a:80 {
	header_up Connection close
	header_down Content-Length 5
	verbose_logs
	transport http {
		read_buffer 8KiB
		write_buffer 8KiB
	}
}
reverse_proxy /e/* a:80 {
	request_buffers unlimited
	transport http {
		keepalive 0
	}
}"
);
warnings!(
    what_of_a_proxy_may_not_be_meant_is_said,
    "reverse_proxy /a/* a:443
reverse_proxy /b/* https://a {
	transport http {
		tls_insecure_skip_verify
		tls_trust_pool file ca.pem
	}
}
reverse_proxy /c/* a:80 https://b
reverse_proxy /d/* a:80 b:80 {
	lb_policy cookie __Host-lb secret
}
reverse_proxy /e/* a:80 {
	trusted_proxies 0.0.0.0/0
}"
);

#[test]
fn what_servers_of_the_global_block_cannot_say() {
    let file = |options: &str| Memory::main(&format!("{{\n{options}\n}}\n:8080 {{\n\trespond hi\n}}\n"));
    let broken = "	servers :443 {
		trusted_proxies static private_ranges
	}";
    insta::assert_snapshot!("servers_of_one_listener", file(broken).errors());
    let broken = "	servers {
		trusted_proxies cloudflare
		trusted_proxies 10.0.0.0/8
		trusted_proxies static
		trusted_proxies static 10.0.0.5/8
		trusted_proxies_strict on
		trusted_proxies_unix
		client_ip_headers CF-Connecting-IP
		protocols h1 h2
		protocols h4
		timeouts {
			idle 5m
		}
		listener_wrappers proxy_protocol
		trusted_proxy static 10.0.0.5
		nothing
	}";
    insta::assert_snapshot!("options_of_servers", file(broken).errors());
    let broken = "	servers {
		trusted_proxies_unix
	}";
    insta::assert_snapshot!("trust_in_unix_sockets_alone", file(broken).errors());
}
errors!(
    http_2_in_the_clear_beside_what_is_not,
    "reverse_proxy /a/* h2c://a b
reverse_proxy /b/* https://a h2c://b
reverse_proxy /c/* a h2c://b
reverse_proxy /d/* h2c://a {
	transport http {
		tls
	}
}
reverse_proxy /e/* h2c://a {
	transport http {
		versions 1.1 2
	}
}"
);
