//! pm2's ecosystem.config.js: which program it starts, where, with which variables and how many processes.
//!
//! The file is a program, so Node.js evaluates it, as pm2 does; what is read is its first application.

use std::path::Path;
use std::process::Command;

use onehop_load::measure::output_of;
use serde_json::Value;

use super::environment::Environment;
use super::files::{TEXT_BYTES_MAX, normal, read_bounded};
use super::launch::{Launch, Program};
use super::script;
use crate::{Setup, SideBySideError};

/// Names that pm2 looks for in a folder, and the same for packages that are ES modules.
pub(super) const FILES: [&str; 4] =
    ["ecosystem.config.js", "ecosystem.config.cjs", "ecosystem.config.mjs", "ecosystem.json"];

/// Prints how many applications there are and what is needed of the first, on the last line of the output.
const EVALUATE: &str = "
const { pathToFileURL } = await import('node:url');
const module = await import(pathToFileURL(process.env.ONEHOP_TRY_FILE));
const config = module.default ?? module;
const apps = [].concat(config.apps ?? config);
const { name, script, cwd, args, interpreter, interpreter_args, node_args, instances, max_memory_restart, env, env_production } =
  apps[0] ?? {};
console.log('\\n' + JSON.stringify({ count: apps.length, name, script, cwd, args, interpreter, max_memory_restart,
  options: interpreter_args ?? node_args, instances, env: { ...env, ...env_production }, keys: Object.keys(apps[0] ?? {}) }));
process.exit(0);
";

/// Settings of an application that are read, or that mean nothing here.
const READ: [&str; 13] = [
    "name",
    "script",
    "cwd",
    "args",
    "interpreter",
    "interpreter_args",
    "node_args",
    "instances",
    "exec_mode",
    "env",
    "env_production",
    "max_memory_restart",
    "autorestart",
];

/// What pm2 would start.
pub(super) fn detect(path: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let folder = path.parent().unwrap_or(path);
    let app = evaluated(path, environment)?;
    let mut notes = Vec::new();
    let count = app["count"].as_u64().unwrap_or_default();
    if count > 1 {
        notes.push(format!("Only the first of its {count} applications is tried."));
    }
    let mut launch = launch(path, folder, &app, environment)?;
    launch.workers = workers(&app);
    if let Some(workers) = &launch.workers {
        notes.push(format!(
            "pm2 starts several processes (`instances`). Both sides are measured with one; the Onehopfile has `workers \
             {workers}`."
        ));
    }
    launch.recycle = recycle(&app);
    notes.extend(left_out(&app));
    script::around(&mut launch, environment, &mut notes)?;
    let name = app["name"].as_str().or(app["script"].as_str()).unwrap_or_default();
    let description = format!(
        "an application of pm2 ({name} in {})",
        path.file_name().unwrap_or_default().to_string_lossy()
    );
    Ok(script::setup(path, folder, launch, description, notes, environment))
}

/// The first application as JSON.
fn evaluated(path: &Path, environment: &Environment) -> Result<Value, SideBySideError> {
    let refuse = |cause: &str| {
        SideBySideError::found(path.display(), cause, "name the file that it starts: onehop try server.js")
    };
    if path.extension().is_some_and(|ending| ending == "json") {
        let text =
            read_bounded(path, TEXT_BYTES_MAX).map_err(|error| SideBySideError::unreadable(path, &error))?;
        let whole: Value =
            serde_json::from_str(&text).map_err(|error| refuse(&format!("it is no JSON: {error}")))?;
        let apps = whole.get("apps").unwrap_or(&whole);
        let mut first = apps.get(0).unwrap_or(apps).clone();
        first["count"] = apps.as_array().map_or(1, Vec::len).into();
        first["keys"] = first.as_object().into_iter().flat_map(|app| app.keys().cloned()).collect();
        let options = first.get("interpreter_args").or(first.get("node_args")).cloned();
        first["options"] = options.unwrap_or_default();
        return Ok(first);
    }
    if environment.is_dry_run {
        return Err(refuse("it is a program, and a dry run starts none"));
    }
    let node = environment.node.as_ref();
    let node = node.ok_or_else(|| refuse("Node.js is not installed, so that it does not run today"))?;
    let mut command = Command::new(node);
    command.args(["--input-type=module", "-e", EVALUATE]).env("ONEHOP_TRY_FILE", path);
    command.current_dir(path.parent().unwrap_or(path));
    let output =
        output_of(&mut command).ok_or_else(|| refuse("Node.js does not evaluate it within two seconds"))?;
    let last = output.trim_end().lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|_| {
        let why =
            output.lines().map(str::trim).find(|line| line.contains("Error")).unwrap_or("no application");
        refuse(&format!("Node.js cannot evaluate it: {why}"))
    })
}

fn launch(
    path: &Path,
    folder: &Path,
    app: &Value,
    environment: &Environment,
) -> Result<Launch, SideBySideError> {
    let refuse = |cause: String, next: &str| Err(SideBySideError::found(path.display(), cause, next));
    let Some(name) = app["script"].as_str() else {
        return refuse(
            "its first application has no `script`".to_owned(),
            "name the file that is started: onehop try server.js",
        );
    };
    let directory = normal(&folder.join(app["cwd"].as_str().unwrap_or(".")));
    let arguments = words(&app["args"]);
    let program = match (app["interpreter"].as_str(), script::resolve(&directory, name)) {
        (None | Some("node" | "bun"), Some(file)) => {
            let runtime = match app["interpreter"].as_str() {
                Some("bun") => "bun",
                Some(_) => "node",
                None => script::runtime_for(&file, environment)?,
            };
            Program::Script { runtime, runtime_arguments: words(&app["options"]), file, arguments }
        }
        (None | Some("node" | "bun"), None) if name.contains(['/', '.']) => {
            return refuse(
                format!("it starts `{name}`, which is not there"),
                "build the application, or name the file that is started: onehop try FILE",
            );
        }
        (interpreter, _) => {
            let interpreter = interpreter.filter(|name| *name != "none" && *name != "node");
            let mut line: Vec<String> = interpreter.map(str::to_owned).into_iter().collect();
            line.extend(words(&app["options"]));
            line.push(name.to_owned());
            line.extend(arguments);
            Program::Command(line)
        }
    };
    let text_of = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let set = app["env"].as_object().into_iter().flatten();
    // Where the application listens is the side-by-side run's.
    let set = set.filter(|(name, _)| !matches!(name.as_str(), "PORT" | "HOST"));
    let environment = set.filter_map(|(name, value)| Some((name.clone(), text_of(value)?))).collect();
    Ok(Launch {
        program,
        words_today: None,
        environment,
        passed: Vec::new(),
        directory,
        workers: None,
        recycle: None,
    })
}

/// `instances` as `workers`; one is what an `app` has by itself.
fn workers(app: &Value) -> Option<String> {
    match &app["instances"] {
        Value::String(text) if text == "max" => Some("auto".to_owned()),
        Value::String(text) => text.parse::<u64>().ok().filter(|number| *number > 1).map(|n| n.to_string()),
        // 0 and what is below is counted from the number of cores.
        Value::Number(number) => match number.as_i64()? {
            1 => None,
            ..=0 => Some("auto".to_owned()),
            more => Some(more.to_string()),
        },
        _ => None,
    }
}

/// `max_memory_restart` as `recycle`: pm2 takes a number of bytes, or one with `K`, `M` or `G`, each 1,024 of the one before.
fn recycle(app: &Value) -> Option<String> {
    let value = &app["max_memory_restart"];
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)? {
        "G" => "GiB",
        "M" => "MiB",
        "K" => "KiB",
        "" => "B",
        _ => return None,
    };
    let number: u64 = digits.parse().ok().filter(|number| *number > 0)?;
    Some(format!("recycle rss {number}{unit}"))
}

/// What the first application says and the Onehopfile does not.
fn left_out(app: &Value) -> Option<String> {
    let keys = app["keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut names: Vec<String> =
        keys.filter(|key| !READ.contains(key)).map(|key| format!("`{key}`")).collect();
    let environment = app["env"].as_object().into_iter().flat_map(|set| set.keys());
    // Where the application listens is onehop's.
    names.extend(
        environment.filter(|name| ["PORT", "HOST"].contains(&name.as_str())).map(|name| format!("`{name}`")),
    );
    (!names.is_empty())
        .then(|| format!("Settings of pm2 without an equal in the Onehopfile: {}.", names.join(", ")))
}

/// Arguments, which pm2 takes as a list or as one text.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
