//! Holds a limit alone: at most two requests in flight, one waits, the next is rejected.
//!
//! ```sh
//! cargo run -p onehop-limits --example limiter
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_config::checked::limit::{Bound, Limit, Priority};
use onehop_limits::ConcurrencyLimiter;
use onehop_limits::concurrency::Acquire;

fn main() -> std::io::Result<()> {
    let limiter = ConcurrencyLimiter::new(Arc::new(Limit {
        label: "example".to_owned(),
        bound: Bound::Fixed(2),
        queue: 1,
        wait: Duration::from_secs(1),
        lag: None,
        shed_status: 503,
    }));
    let acquire = || limiter.acquire(Priority::Normal, Instant::now(), || None);

    // Two requests are admitted, the third waits, the fourth is rejected.
    assert!(matches!(acquire(), Acquire::Admitted));
    assert!(matches!(acquire(), Acquire::Admitted));
    let Acquire::Queued(mut third) = acquire() else { panic!("the queue is empty") };
    let Acquire::Rejected(cause) = acquire() else { panic!("the queue is full") };
    println!("{} in flight, {} queued", limiter.in_flight(), limiter.queued());
    println!("rejected: {:?}", limiter.reject(cause, Instant::now()));

    // A permit that is released admits the request that waits.
    limiter.release();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let decision = runtime.block_on(third.decided(|_| None));
    println!("the third request: {decision:?}; {} in flight", limiter.in_flight());

    // Each admitted request releases its permit once.
    limiter.release();
    limiter.release();
    println!("{} in flight, {} admitted in all", limiter.in_flight(), limiter.admitted());
    Ok(())
}
