//! HTTP/2 of the real program as clients see it: frame by frame, well-behaved, wrong and hostile.
//!
//! The frames are the tests' own (`onehop_testkit::http2`), so that nothing between them and the server corrects anything.
//! Whole clients are in tests/e2e/http2.test.mjs, the cases of h2spec in `cargo xtask suites --ci --only build,http2`.

mod subject;

mod apps;
mod attacks;
mod bodies;
mod connections;
mod floods;
mod guards;
mod proxy;
mod refusals;
mod requests;
mod websockets;
