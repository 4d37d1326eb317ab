//! The way out of one place: a TUN device whose packets are ours to carry.
//!
//! Owns how it is opened and addressed. The device goes away with its descriptor.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Command;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use tokio_tun::Tun;

/// Every namespace has names of its own.
const NAME: &str = "distance";
/// As on the open network: answers must need as many segments here as there.
const MTU_BYTES: u32 = 1500;
/// Packets that wait in the device for the relay: a window of 4 MiB, far more than a burst within a delay of a
/// millisecond.
const DEVICE_QUEUE_PACKETS: u32 = 3000;

/// Opens the device in the namespace of this thread, gives it an address and a way to the other end, and brings it up
/// together with loopback. Reads and writes of the descriptor do not block.
pub(super) fn open(here: Ipv4Addr, there: Ipv4Addr) -> io::Result<OwnedFd> {
    let descriptor = attach()?;
    ip(&["link", "set", "lo", "up"])?;
    ip(&["address", "add", &here.to_string(), "peer", &there.to_string(), "dev", NAME])?;
    let (mtu, queue) = (MTU_BYTES.to_string(), DEVICE_QUEUE_PACKETS.to_string());
    ip(&["link", "set", NAME, "mtu", &mtu, "txqueuelen", &queue, "up"])?;
    Ok(descriptor)
}

/// A property of the route: a namespace's own setting may only name what the whole machine allows.
pub(super) fn use_congestion_control(here: Ipv4Addr, there: Ipv4Addr, name: &str) -> io::Result<()> {
    let (here, there) = (here.to_string(), there.to_string());
    let route = ["route", "change", &there, "dev", NAME, "proto", "kernel", "scope", "link", "src", &here];
    ip(&[&route[..], &["congctl", name]].concat())
}

/// The crate that makes the system call ties the device to a runtime, whose clock is too coarse for us: a second
/// descriptor of the same device is all that we keep.
fn attach() -> io::Result<OwnedFd> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    let refused = |error| io::Error::other(format!("cannot open a TUN device: {error}"));
    let mut devices = Tun::builder().name(NAME).build().map_err(refused)?;
    let device = devices.pop().ok_or_else(|| io::Error::other("a TUN device without a queue"))?;
    let ourselves = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(ourselves, device.as_raw_fd(), PidfdGetfdFlags::empty())?)
}

fn ip(words: &[&str]) -> io::Result<()> {
    let output = Command::new("ip").args(words).output()?;
    if output.status.success() {
        return Ok(());
    }
    let reported = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("`ip {}`: {reported}", words.join(" "))))
}
