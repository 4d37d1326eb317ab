//! What machine this is.
//!
//! Owns the look and what of it makes figures doubtful. Never says more than it found: a machine that hides well
//! what it is looks like a machine of its own.

use std::path::Path;

use super::Machine;
use super::cores;
use super::process::{number_behind, read};
use crate::caveat::{Caveat, CaveatCode};

/// Above this load average for each core others were at work before the measurement began.
const LOAD_AVERAGE_PER_CORE_MAX: f64 = 0.3;

/// The machine, now.
pub fn look() -> Machine {
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let memory = read("/proc/meminfo").unwrap_or_default();
    let line = |path: &str| read(path).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let load_average = read("/proc/loadavg").and_then(|text| text.split_whitespace().next()?.parse().ok());
    Machine {
        processor: processor_in(&cpuinfo).unwrap_or_else(|| format!("unknown ({})", std::env::consts::ARCH)),
        cores: cores::allowed().len(),
        kernel: line("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
        system: read("/etc/os-release")
            .and_then(|text| system_in(&text))
            .unwrap_or_else(|| "unknown".to_owned()),
        memory_bytes: number_behind(&memory, "MemTotal:").unwrap_or(0).saturating_mul(1024),
        inside: inside(&cpuinfo),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        load_average: load_average.unwrap_or(0.0),
    }
}

impl Machine {
    /// What about it makes figures doubtful, for people.
    pub fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        match self.cores {
            0 | 1 => caveats.push(CaveatCode::FewCores.says(
                "there is one core: server and load take turns on it, and latencies are those of waiting for it",
            )),
            2 | 3 => caveats.push(CaveatCode::FewCores.says(format!(
                "there are {} cores: the system's own work shares them with server and load",
                self.cores
            ))),
            _ => {}
        }
        if self.inside.starts_with("container") {
            let text = format!("this is a {}: others may share its cores unseen", self.inside);
            caveats.push(CaveatCode::SharedMachine.says(text));
        } else if self.inside.starts_with("virtual") {
            let text = format!("this is a {}: what shares the machine below is not seen", self.inside);
            caveats.push(CaveatCode::SharedMachine.says(text));
        }
        if let Some(governor) = self.governor.as_deref().filter(|governor| *governor != "performance") {
            caveats.push(CaveatCode::ClockGovernor.says(format!(
                "the cores' clock follows their load (governor `{governor}`): `performance` gives steadier figures"
            )));
        }
        if self.load_average > LOAD_AVERAGE_PER_CORE_MAX * self.cores.max(1) as f64 {
            caveats.push(CaveatCode::BusyMachine.says(format!(
                "the load average was {:.2} at the start: something else is at work on the {} cores",
                self.load_average, self.cores
            )));
        }
        caveats
    }
}

/// The name on x86, or what ARM tells.
fn processor_in(cpuinfo: &str) -> Option<String> {
    let value = |name: &str| {
        let line =
            cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        let value = line.split_once(':')?.1.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    value("model name").or_else(|| value("Model")).or_else(|| value("Hardware")).or_else(|| {
        let (implementer, part) = (value("CPU implementer")?, value("CPU part")?);
        Some(format!("ARM implementer {implementer} part {part}"))
    })
}

/// `PRETTY_NAME="Debian GNU/Linux 12"` (os-release(5)).
fn system_in(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim().trim_matches(['"', '\'']).to_owned()).filter(|name| !name.is_empty())
}

fn inside(cpuinfo: &str) -> String {
    if let Some(what) = container() {
        return format!("container ({what})");
    }
    match virtual_machine(cpuinfo) {
        Some(what) => format!("virtual machine ({what})"),
        None => "none found".to_owned(),
    }
}

fn container() -> Option<String> {
    for file in ["/.dockerenv", "/run/.containerenv"] {
        if Path::new(file).exists() {
            return Some(file.to_owned());
        }
    }
    let first = read("/proc/1/cgroup").unwrap_or_default();
    let marks = ["docker", "kubepods", "containerd", "libpod", "lxc"];
    let mark = marks.into_iter().find(|mark| first.contains(mark));
    mark.map(|mark| format!("the first process's control group names {mark}"))
}

/// Names that makers of virtual machines give to what they pretend to be.
const VIRTUAL_NAMES: [&str; 10] = [
    "KVM",
    "QEMU",
    "VMware",
    "VirtualBox",
    "Xen",
    "Amazon EC2",
    "Google",
    "Virtual Machine",
    "Bochs",
    "OpenStack",
];

fn virtual_machine(cpuinfo: &str) -> Option<String> {
    let named = ["sys_vendor", "product_name", "board_vendor"].into_iter().find_map(|file| {
        let text = read(&format!("/sys/class/dmi/id/{file}"))?;
        let text = text.trim();
        VIRTUAL_NAMES.iter().any(|name| text.contains(name)).then(|| text.to_owned())
    });
    let has_flag = || {
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
        flags
            .split_whitespace()
            .any(|flag| flag == "hypervisor")
            .then(|| "the processor's flag `hypervisor`".to_owned())
    };
    let by_firmware =
        || Path::new("/sys/hypervisor/type").exists().then(|| "/sys/hypervisor/type".to_owned());
    named.or_else(has_flag).or_else(by_firmware)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_figures_doubtful_is_said() {
        let quiet = Machine { cores: 8, inside: "none found".to_owned(), ..Machine::default() };
        assert_eq!(quiet.caveats(), []);
        let doubtful = Machine {
            cores: 2,
            inside: "container (/.dockerenv)".to_owned(),
            governor: Some("powersave".to_owned()),
            load_average: 0.7,
            ..Machine::default()
        };
        let caveats = doubtful.caveats().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        for part in ["2 cores", "container", "`powersave`", "0.70"] {
            assert!(caveats.contains(part), "{part}: {caveats}");
        }
        assert_eq!(doubtful.caveats().len(), 4);
        let busy = Machine { cores: 4, load_average: 1.1, ..quiet };
        assert_eq!(busy.caveats().len(), 0);
    }

    #[test]
    fn this_machine_has_a_kernel_cores_and_memory() {
        let machine = look();
        assert!(machine.cores >= 1 && machine.memory_bytes > 16 << 20, "{machine:?}");
        assert!(!machine.kernel.is_empty() && !machine.processor.is_empty(), "{machine:?}");
    }

    #[test]
    fn names_are_found_in_the_kernels_texts() {
        assert_eq!(processor_in("processor\t: 0\nmodel name\t: A B\n").as_deref(), Some("A B"));
        let target = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(processor_in(target).as_deref(), Some("ARM implementer 0x41 part 0xd0c"));
        assert_eq!(system_in("NAME=x\nPRETTY_NAME=\"A 1\"\n").as_deref(), Some("A 1"));
    }
}
