//! `log` with names, filters, templates and sampling, and `log_skip`, `log_append`, `log_name`.

use std::time::Duration;

use onehop_config::checked::{
    AccessLog, FieldAction, LogField, LogFormat, LogOutput, LogSampling, LogTemplatePart, LogTime,
    NetAddress, ServerLogFormat, Step, ValueAction,
};

use crate::memory::{Memory, text_of};

fn log(options: &str) -> AccessLog {
    let text = format!(":80 {{\n\tlog {{\n{options}\n\t}}\n\trespond a\n}}\n");
    Memory::main(&text).sound().checked.sites[0].logs[0].clone()
}

#[test]
fn rules_of_a_filter_stand_in_its_block_or_in_fields() {
    let rules = "uri query {\n\tdelete a\n\treplace b c\n}\nrequest>headers>Cookie cookie {\n\thash id\n}\nrequest>headers>X regexp a(.) $1\nrequest>client_ip ip_mask 16 32\nrequest>remote_ip ip_mask {\n\tipv6 48\n}\nresp_headers delete\nstatus rename code\nsize replace";
    let bare = log(&format!("format filter {{\n{rules}\nwrap json {{\ntime_format iso8601\n}}\n}}"));
    let within =
        log(&format!("format filter {{\nwrap json {{\ntime_format iso8601\n}}\nfields {{\n{rules}\n}}\n}}"));
    assert_eq!(bare, within);
    let LogFormat::Filter(filter) = bare.format else { panic!("{:?}", bare.format) };
    assert_eq!(filter.time, LogTime::Iso8601);
    let rules: Vec<_> = filter.rules.iter().map(|rule| (rule.field.clone(), rule.action.clone())).collect();
    assert!(
        matches!(&rules[0], (LogField::Appended(name), FieldAction::Query(of)) if name == "uri" && of.len() == 2)
    );
    assert!(
        matches!(&rules[1], (LogField::RequestHeader(name), FieldAction::Cookie(of)) if name == "cookie" && of[0].action == ValueAction::Hash)
    );
    assert!(
        matches!(&rules[2].1, FieldAction::Regexp { find, replace } if find == "a(.)" && replace == "$1")
    );
    assert_eq!(rules[3], (LogField::ClientIp, FieldAction::IpMask { ipv4: 16, ipv6: 32 }));
    assert_eq!(rules[4], (LogField::RemoteIp, FieldAction::IpMask { ipv4: 0, ipv6: 48 }));
    assert_eq!(rules[5], (LogField::ResponseHeaders, FieldAction::Delete));
    assert_eq!(rules[6], (LogField::Status, FieldAction::Rename("code".into())));
    assert_eq!(rules[7], (LogField::Size, FieldAction::Replace(String::new())));
}

#[test]
fn a_template_without_text_is_the_common_log_format() {
    let formats = ["format transform", "format transform {common_log}", "format transform \"{common_log}\""];
    for format in formats {
        let LogFormat::Transform(template) = log(format).format else { panic!("{format}") };
        assert_eq!((template.time, template.empty.as_str()), (LogTime::CommonLog, "-"), "{format}");
        assert_eq!(template.parts[0], LogTemplatePart::Value(vec![(LogField::ClientIp, None)]), "{format}");
    }
    let LogFormat::Transform(template) =
        log("format transform \"{a:request>uri}\" {\nplaceholder none\ntime_format wall\n}").format
    else {
        panic!("a template")
    };
    assert_eq!((template.time, template.empty.as_str(), template.parts.len()), (LogTime::Wall, "none", 1));
}

#[test]
fn names_levels_and_sampling_are_read() {
    let text = "{\n\tservers {\n\t\tlog_credentials\n\t}\n}\nhttp://a.example {\n\tlog\n\tlog health {\n\t\tno_hostname\n\t\tlevel ERROR\n\t\tsampling {\n\t\t\tfirst 5\n\t\t\tthereafter 0\n\t\t}\n\t}\n\tlog_name /healthz health\n\tlog_append <asked {uri}\n\tlog_append peer {upstream_hostport}\n\tlog_skip /assets/*\n\tskip_log /old\n\trespond a\n}\n";
    let site = Memory::main(text).sound().checked.sites[0].clone();
    let [usual, health] = site.logs.as_slice() else { panic!("{:?}", site.logs) };
    assert_eq!((usual.name.as_deref(), usual.only_named, usual.credentials), (None, false, true));
    assert_eq!((health.name.as_deref(), health.only_named, health.only_errors), (Some("health"), true, true));
    let sampling = LogSampling { interval: Duration::from_secs(1), first: 5, thereafter: 0 };
    assert_eq!((usual.sampling, health.sampling), (None, Some(sampling)));
    // In the order in which they act: Caddy's.
    let steps: Vec<String> = site
        .routes
        .iter()
        .map(|route| match &route.step {
            Step::LogSkip => "skip".to_owned(),
            Step::LogAppend(append) => format!("append {} early {}", append.key, append.early),
            Step::LogName(names) => format!("name {}", names.join(" ")),
            _ => "other".to_owned(),
        })
        .collect();
    assert_eq!(
        steps,
        ["append asked early true", "append peer early false", "skip", "skip", "name health", "other"]
    );
}

#[test]
fn a_receiver_is_an_address_of_a_network() {
    for (output, expected, is_syslog) in [
        ("net logs.internal:514", NetAddress::Tcp("logs.internal:514".into()), false),
        ("net tcp/[::1]:514", NetAddress::Tcp("[::1]:514".into()), false),
        ("net udp/127.0.0.1:514", NetAddress::Udp("127.0.0.1:514".into()), false),
        ("net unix//run/log.sock", NetAddress::Unix("/run/log.sock".into()), false),
        ("syslog", NetAddress::UnixDatagram("/dev/log".into()), true),
        ("syslog udp/127.0.0.1:514", NetAddress::Udp("127.0.0.1:514".into()), true),
    ] {
        let LogOutput::Net(net) = log(&format!("output {output} {{\ndial_timeout 2s\nsoft_start\n}}")).output
        else {
            panic!("{output}")
        };
        assert_eq!((net.address, net.is_syslog), (expected, is_syslog), "{output}");
        assert_eq!((net.dial_timeout, net.soft_start), (Duration::from_secs(2), true));
    }
}

#[test]
fn what_is_wrong_with_a_log_is_said() {
    for (lines, expected) in [
        ("log a b", "log [<name>]"),
        ("log {\n\t\toutput net\n\t}", "output net <address>"),
        ("log {\n\t\toutput net localhost\n\t}", "`localhost` is no address for a log"),
        ("log {\n\t\toutput net fd/3\n\t}", "`fd/3` is no address for a log"),
        ("log {\n\t\toutput sislog\n\t}", "did you mean `syslog`?"),
        ("log a\n\tlog a", "has a log `a` already"),
        ("log {\n\t\tno_hostname\n\t}", "`log_name` cannot call it"),
        ("log {\n\t\tlevel LOUD\n\t}", "there is no level `LOUD`"),
        ("log {\n\t\tlevel FATAL\n\t}", "no request is logged as `FATAL`"),
        ("log {\n\t\tsampling {\n\t\t\tinterval 0\n\t\t}\n\t}", "from 1ms to 1d"),
        (
            "log {\n\t\tformat console\n\t}",
            "`format console` is a feature of Caddy that onehop does not have yet",
        ),
        ("log {\n\t\tformat append\n\t}", "`log_append` adds a field"),
        ("log {\n\t\tformat jsn\n\t}", "did you mean `json`?"),
        (
            "log {\n\t\tformat json {\n\t\t\ttime_format 15:04\n\t\t}\n\t}",
            "`time_format 15:04` is a format that onehop does not have yet",
        ),
        (
            "log {\n\t\tformat json {\n\t\t\tmessage_key m\n\t\t}\n\t}",
            "`message_key` is an option of Caddy's `format json`",
        ),
        ("log {\n\t\tformat filter\n\t}", "has no rule"),
        (
            "log {\n\t\tformat filter {\n\t\t\twrap console\n\t\t\tstatus delete\n\t\t}\n\t}",
            "`wrap console` is a feature of Caddy",
        ),
        ("log {\n\t\tformat filter {\n\t\t\trequest>urri delete\n\t\t}\n\t}", "did you mean `request>uri`?"),
        ("log {\n\t\tformat filter {\n\t\t\tts delete\n\t\t}\n\t}", "`ts` stays as it is"),
        (
            "log {\n\t\tformat filter {\n\t\t\tstatus delete\n\t\t\tstatus delete\n\t\t}\n\t}",
            "`status` is set twice",
        ),
        ("log {\n\t\tformat filter {\n\t\t\tstatus dlete\n\t\t}\n\t}", "did you mean `delete`?"),
        ("log {\n\t\tformat filter {\n\t\t\trequest>headers hash\n\t\t}\n\t}", "name one of its fields"),
        ("log {\n\t\tformat filter {\n\t\t\trequest>uri regexp ( a\n\t\t}\n\t}", "is no regular expression"),
        (
            "log {\n\t\tformat filter {\n\t\t\trequest>uri multi_regexp {\n\t\t\t}\n\t\t}\n\t}",
            "`multi_regexp` is a filter of Caddy",
        ),
        ("log {\n\t\tformat filter {\n\t\t\trequest>client_ip ip_mask 33\n\t\t}\n\t}", "from 0 to 32"),
        (
            "log {\n\t\tformat filter {\n\t\t\trequest>uri query {\n\t\t\t\tremove a\n\t\t\t}\n\t\t}\n\t}",
            "there are `delete`, `replace` and `hash`",
        ),
        ("log {\n\t\tformat transform \"{request>url}\"\n\t}", "lines have no field `{request>url}`"),
        ("log {\n\t\tformat transform \"a\nb\"\n\t}", "no control characters"),
        ("log_name health", "this site has no log `health`"),
        ("log helth\n\tlog_name health", "did you mean `helth`?"),
        ("log_name", "log_name [<matcher>] <name>…"),
        ("log_skip /a b", "log_skip [<matcher>]"),
        ("log_append a", "log_append [<matcher>] [<]<key> <value>"),
        ("log_append status 1", "`status` cannot be the name of an appended field"),
        ("log_append request>a 1", "`request>a` cannot be the name of an appended field"),
        (
            "handle {\n\t\tlog_level DEBUG\n\t}",
            "`log_level` is a Caddy directive that onehop does not have yet",
        ),
    ] {
        let errors = Memory::main(&format!(":80 {{\n\t{lines}\n\trespond a\n}}\n")).load().err();
        let text = errors.map_or_else(String::new, |problems| text_of(&problems));
        assert!(text.contains(expected), "{lines}: {text}");
    }
}

#[test]
fn the_log_of_the_global_block_is_where_requests_go_whose_log_does_not_say_it() {
    let text = "{\n\tlog default {\n\t\toutput file server.log {\n\t\t\troll_size 5MiB\n\t\t}\n\t\tformat json\n\t\tlevel ERROR\n\t}\n}\n\
                :80 {\n\tlog\n\tlog own {\n\t\toutput stdout\n\t}\n\trespond a\n}\n";
    let checked = Memory::main(text).sound().checked;
    let log = checked.global.log.expect("a log");
    assert_eq!(log.output, LogOutput::File("/work/server.log".into()));
    assert_eq!(log.roll.map(|roll| roll.size), Some(5 * 1024 * 1024));
    assert_eq!((log.format, log.only_errors), (Some(ServerLogFormat::Json), true));
    let [usual, own] = checked.sites[0].logs.as_slice() else { panic!("two logs") };
    assert_eq!((&usual.output, usual.roll), (&log.output, log.roll));
    assert_eq!((&own.output, own.roll), (&LogOutput::Stdout, None));
}

#[test]
fn what_the_log_of_the_global_block_cannot_do_is_said() {
    for (text, message) in [
        (
            "log audit {\n\t\tinclude http.log.access\n\t}",
            "no further loggers in the global block, as `audit`",
        ),
        ("log {\n\t\tformat jsn\n\t}", "messages have no format `jsn`"),
        ("log {\n\t\tformat json {\n\t\t\ttime_format wall\n\t\t}\n\t}", "have no options here"),
        ("log {\n\t\tlevel loud\n\t}", "there is no level `loud`"),
        ("log {\n\t\texclude a\n\t}", "exclude"),
    ] {
        let problems = Memory::main(&format!("{{\n\t{text}\n}}\n:80 {{\n\trespond a\n}}\n")).load();
        let problems = text_of(&problems.err().unwrap_or_else(|| panic!("{text}")));
        assert!(problems.contains(message), "{text}: {problems}");
    }
}
