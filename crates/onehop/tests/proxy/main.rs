//! `reverse_proxy` of the real program against scripted upstreams: what goes wrong with them, and what a client, the
//! upstream and the metrics then see.
//!
//! Expectations that are no one's invention hold for Caddy too: `ONEHOP_PROXY_BY=caddy` runs these tests with the
//! Caddy that `ONEHOP_CADDY` names in onehop's place, without what only onehop has (its metrics and `pool`). Caddy
//! fails two of them, the exam and the one of idle connections, with 502 where nothing was wrong.
//!
//! Longer by the surroundings: `ONEHOP_PROXY_EXAM_SECONDS` and `_CLIENTS`, `ONEHOP_PROXY_IDLE_SECONDS` and `_MS`
//! (for 100,000 GETs some 200 s), `ONEHOP_PROXY_REST_SECONDS`, `ONEHOP_PROXY_RELOADS`, `ONEHOP_PROXY_TUNNELS`,
//! `ONEHOP_PROXY_SLOW_CLIENTS`.

mod subject;

mod broken;
mod corpus;
mod differences;
mod exam;
mod fields;
mod health;
mod http2;
mod idle;
mod names;
mod pool;
mod reload;
mod slow;
mod smuggling;
mod streams;
mod tls;
mod uploads;
