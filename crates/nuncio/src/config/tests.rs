use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::Value;

use super::origin::Origin;
use super::{Config, Loaded, Refusals, Sources, Workshop, dump, load};

/// Loads a text as the file `n.toml`.
fn load_text(text: &str, environment: &[(&str, &str)]) -> Result<Loaded, Refusals> {
    load_with(text, environment, Vec::new(), false)
}

fn load_with(
    text: &str,
    environment: &[(&str, &str)],
    flags: Vec<(&'static str, &'static str, Value)>,
    insecure: bool,
) -> Result<Loaded, Refusals> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("n.toml");
    std::fs::write(&path, text).unwrap();
    let environment = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let sources = Sources {
        file: Some(path),
        environment: environment.collect::<BTreeMap<_, _>>(),
        flags,
        insecure,
    };
    load(sources).map_err(|mut refusals| {
        for refusal in &mut refusals.0 {
            if let Origin::Line(path, _) | Origin::File(path) = &mut refusal.origin {
                *path = PathBuf::from("n.toml");
            }
        }
        refusals
    })
}

/// Place, key, a piece of what is wrong, a piece of the hint.
type Expected<'a> = (&'a str, &'a str, &'a str, &'a str);

/// U10: each is refused at start with file and line, key, and a hint.
#[test]
fn wrong_configurations_are_refused_with_place_key_and_hint() {
    let script = "[[agents]]\nid = \"a\"\nkind = \"script\"\n";
    let rule =
        |steps: &str| format!("{script}[[agents.rules]]\notherwise = true\nsteps = [{steps}]\n");
    let hash = "0".repeat(64);
    let cases: Vec<(String, Expected<'_>)> = vec![
        // The form of the file.
        (
            "[server\n".into(),
            ("n.toml:1", "", "failed to parse", "TOML"),
        ),
        (
            "[server]\nworkers = 1\nworkers = 2\n".into(),
            ("n.toml:3", "", "failed to parse", "TOML"),
        ),
        (
            "[server]\nlisten = 127.0.0.1:80\n".into(),
            ("n.toml:2", "", "failed to parse", "TOML"),
        ),
        // Unknown keys.
        (
            "[sever]\n".into(),
            (
                "n.toml:1",
                "sever",
                "unknown key `sever`",
                "did you mean `server`?",
            ),
        ),
        (
            "\n[server]\nlisen = \"x\"\n".into(),
            (
                "n.toml:3",
                "server.lisen",
                "unknown key `lisen`",
                "did you mean `listen`?",
            ),
        ),
        (
            "[server]\nport = 80\n".into(),
            (
                "n.toml:2",
                "server.port",
                "unknown key `port`",
                "known here: listen, ",
            ),
        ),
        (
            "[store]\nuri = \"memory:\"\n".into(),
            (
                "n.toml:2",
                "store.uri",
                "unknown key `uri`",
                "did you mean `url`?",
            ),
        ),
        (
            "[engine]\nresume_by_contxt = true\n".into(),
            (
                "n.toml:2",
                "engine.resume_by_contxt",
                "unknown key",
                "did you mean `resume_by_context`?",
            ),
        ),
        (
            "[[auth.keys]]\nsha265 = \"\"\n".into(),
            (
                "n.toml:2",
                "auth.keys[0].sha265",
                "unknown key",
                "did you mean `sha256`?",
            ),
        ),
        (
            format!("{script}desciption = \"x\"\n"),
            (
                "n.toml:4",
                "agents[0].desciption",
                "unknown key",
                "did you mean `description`?",
            ),
        ),
        (
            format!("{script}[[agents.rules]]\nwhen = {{ txt = \"x\" }}\n"),
            (
                "n.toml:5",
                "agents[0].rules[0].when.txt",
                "unknown key",
                "did you mean `text`?",
            ),
        ),
        (
            rule("\n  { status = \"a\" },\n  { artefact = { text = \"b\" } },\n"),
            (
                "n.toml:8",
                "agents[0].rules[0].steps[1]",
                "unknown value `artefact`",
                "did you mean `artifact`?",
            ),
        ),
        (
            rule("{ artifact = { text = \"b\", file_name = \"c\" } }"),
            (
                "n.toml:6",
                "agents[0].rules[0].steps[0].artifact.file_name",
                "unknown key",
                "did you mean `filename`?",
            ),
        ),
        // Values of the wrong kind.
        (
            "[server]\nworkers = \"two\"\n".into(),
            (
                "n.toml:2",
                "server.workers",
                "invalid type",
                "for example `workers = 0`",
            ),
        ),
        (
            "[server]\nworkers = -1\n".into(),
            ("n.toml:2", "server.workers", "-1", "for example"),
        ),
        (
            "[server]\nstrict_version = 1\n".into(),
            (
                "n.toml:2",
                "server.strict_version",
                "invalid type",
                "`strict_version = false`",
            ),
        ),
        (
            "server = 5\n".into(),
            ("n.toml:1", "server", "invalid type", "schema"),
        ),
        (
            "[server]\nstatus_profile = \"1.0.2\"\n".into(),
            (
                "n.toml:2",
                "server.status_profile",
                "unknown value `1.0.2`",
                "did you mean `1.0.0`?",
            ),
        ),
        (
            "[log]\nformat = \"jsn\"\n".into(),
            (
                "n.toml:2",
                "log.format",
                "unknown value",
                "did you mean `json`?",
            ),
        ),
        (
            "[[agents]]\nid = \"a\"\nkind = \"ecko\"\n".into(),
            (
                "n.toml:3",
                "agents[0].kind",
                "unknown value `ecko`",
                "did you mean `echo`?",
            ),
        ),
        // Missing keys.
        (
            "[[agents]]\nid = \"a\"\n".into(),
            (
                "n.toml:1",
                "agents[0]",
                "missing key `kind`",
                "add `kind = …`",
            ),
        ),
        (
            "[[auth.keys]]\ncaller = \"a\"\n".into(),
            (
                "n.toml:1",
                "auth.keys[0]",
                "missing key `sha256`",
                "add `sha256 = …`",
            ),
        ),
        (
            format!("{script}[[agents.skills]]\nid = \"s\"\nname = \"S\"\ntags = [\"t\"]\n"),
            (
                "n.toml:4",
                "agents[0].skills[0]",
                "missing key `description`",
                "add `description",
            ),
        ),
        (
            format!("{script}[[agents.skills]]\nid = \"s\"\nname = \"S\"\ndescription = \"d\"\n"),
            (
                "n.toml:4",
                "agents[0].skills[0]",
                "missing key `tags`",
                "add `tags",
            ),
        ),
        // Values out of range or without sense.
        (
            "[server]\nlisten = \"localhost\"\n".into(),
            (
                "n.toml:2",
                "server.listen",
                "not an address with a port",
                "127.0.0.1:8080",
            ),
        ),
        (
            "[server]\npublic_url = \"agents.example.com\"\n".into(),
            (
                "n.toml:2",
                "server.public_url",
                "not an http or https URL",
                "https://",
            ),
        ),
        (
            "[server]\ncors = [\n  \"https://a.example\",\n  \"a.example\",\n]\n".into(),
            (
                "n.toml:4",
                "server.cors[1]",
                "not a web origin",
                "https://app.example.com",
            ),
        ),
        (
            "[server]\ntrusted_proxies = [\"10.0.0.0/33\"]\n".into(),
            (
                "n.toml:2",
                "server.trusted_proxies[0]",
                "not a network",
                "10.0.0.0/8",
            ),
        ),
        (
            "[webhooks]\nallow_networks = [\"10.0.0.0/8\", \"inside\"]\n".into(),
            (
                "n.toml:2",
                "webhooks.allow_networks[1]",
                "not a network",
                "10.0.0.0/8",
            ),
        ),
        (
            "[webhooks]\ntimeout_seconds = 0\n".into(),
            (
                "n.toml:2",
                "webhooks.timeout_seconds",
                "0 is out of range",
                "1 to 300",
            ),
        ),
        (
            "[server]\nmax_body_bytes = 10\n".into(),
            (
                "n.toml:2",
                "server.max_body_bytes",
                "10 is out of range",
                "1024 to 1073741824",
            ),
        ),
        (
            "[server]\nheartbeat_seconds = 0\n".into(),
            (
                "n.toml:2",
                "server.heartbeat_seconds",
                "0 is out of range",
                "1 to 3600",
            ),
        ),
        (
            "[engine]\nrun_deadline_seconds = 0\n".into(),
            (
                "n.toml:2",
                "engine.run_deadline_seconds",
                "0 is out of range",
                "1 to",
            ),
        ),
        (
            "[store]\nurl = \"mysql://h/d\"\n".into(),
            (
                "n.toml:2",
                "store.url",
                "no store that is known",
                "sqlite:PATH",
            ),
        ),
        (
            "[store]\nparts = \"gs://b\"\n".into(),
            (
                "n.toml:2",
                "store.parts",
                "no place for parts",
                "s3://BUCKET",
            ),
        ),
        (
            "[store]\nwake_ups = \"redis://h\"\n".into(),
            ("n.toml:2", "store.wake_ups", "no URL of NATS", "nats://"),
        ),
        (
            "[store]\nwake_ups = \"nats://h\"\n".into(),
            (
                "n.toml:2",
                "store.wake_ups",
                "no other server",
                "postgres://",
            ),
        ),
        (
            "[log]\nlevel = \"loud\"\n".into(),
            ("n.toml:2", "log.level", "not a level", "debug"),
        ),
        (
            "[server]\ndefault_agent = \"b\"\n".into(),
            (
                "n.toml:2",
                "server.default_agent",
                "there is no agent \"b\"",
                "one of: echo",
            ),
        ),
        // Who may call.
        (
            "[server]\nlisten = \"0.0.0.0:80\"\n".into(),
            (
                "n.toml:2",
                "server.listen",
                "open to the network",
                "--insecure",
            ),
        ),
        (
            format!(
                "[server]\nlisten = \"0.0.0.0:80\"\n[auth]\nanonymous = true\n[[auth.keys]]\nsha256 = \"{hash}\"\ncaller = \"a\"\n"
            ),
            (
                "n.toml:4",
                "auth.anonymous",
                "anonymous calls are taken",
                "--insecure",
            ),
        ),
        (
            "[auth]\nanonymous = false\n".into(),
            (
                "n.toml:2",
                "auth.anonymous",
                "nobody could call",
                "nuncio keys create",
            ),
        ),
        (
            "[[auth.keys]]\nsha256 = \"abc\"\ncaller = \"a\"\n".into(),
            (
                "n.toml:2",
                "auth.keys[0].sha256",
                "not a SHA-256",
                "nuncio keys create",
            ),
        ),
        (
            format!("[[auth.keys]]\nsha256 = \"{hash}\"\ncaller = \"a b\"\n"),
            (
                "n.toml:3",
                "auth.keys[0].caller",
                "not a name",
                "letters, digits",
            ),
        ),
        (
            format!(
                "[[auth.keys]]\nsha256 = \"{hash}\"\ncaller = \"a\"\n[[auth.keys]]\nsha256 = \"{hash}\"\ncaller = \"b\"\n"
            ),
            (
                "n.toml:5",
                "auth.keys[1].sha256",
                "the same key twice",
                "one caller",
            ),
        ),
        // Agents.
        (
            "[[agents]]\nid = \"a/b\"\nkind = \"echo\"\n".into(),
            (
                "n.toml:2",
                "agents[0].id",
                "\"a/b\" is not a name",
                "letters, digits",
            ),
        ),
        (
            "[[agents]]\nid = \"a\"\nkind = \"echo\"\n[[agents]]\nid = \"a\"\nkind = \"echo\"\n"
                .into(),
            (
                "n.toml:5",
                "agents[1].id",
                "two agents \"a\"",
                "an id of its own",
            ),
        ),
        (
            "[[agents]]\nid = \"a\"\nkind = \"echo\"\nrules = [{ otherwise = true }]\n".into(),
            (
                "n.toml:4",
                "agents[0].rules",
                "an agent of kind echo has no rules",
                "script",
            ),
        ),
        (
            script.into(),
            (
                "n.toml:1",
                "agents[0].rules",
                "at least one rule",
                "otherwise",
            ),
        ),
        (
            "[[agents]]\nid = \"a\"\nkind = \"echo\"\ninput_modes = [\"text\"]\n".into(),
            (
                "n.toml:4",
                "agents[0].input_modes[0]",
                "not a media type",
                "text/plain",
            ),
        ),
        (
            "[[agents]]\nid = \"a\"\nkind = \"echo\"\noutput_modes = []\n".into(),
            (
                "n.toml:4",
                "agents[0].output_modes",
                "at least one media type",
                "text/plain",
            ),
        ),
        (
            format!(
                "{}[[agents.skills]]\nid = \"s\"\nname = \"S\"\ndescription = \" \"\ntags = []\n",
                "[[agents]]\nid = \"a\"\nkind = \"echo\"\n"
            ),
            (
                "n.toml:7",
                "agents[0].skills[0].description",
                "description is empty",
                "strict clients",
            ),
        ),
        (
            format!("{script}[[agents.rules]]\nsteps = []\n"),
            (
                "n.toml:4",
                "agents[0].rules[0]",
                "a rule needs `when`",
                "otherwise = true",
            ),
        ),
        (
            rule("\"silent\",\n{ status = \"x\" }"),
            (
                "n.toml:7",
                "agents[0].rules[0].steps[1]",
                "never played",
                "ends the turn",
            ),
        ),
        (
            rule("{ status = \"x\" }, { message = \"y\" }"),
            (
                "n.toml:6",
                "agents[0].rules[0].steps[1]",
                "answers without a task",
                "artifact",
            ),
        ),
        (
            rule("{ artifact = { raw = \"?\" } }"),
            (
                "n.toml:6",
                "agents[0].rules[0].steps[0].artifact.raw",
                "not base64",
                "base64",
            ),
        ),
    ];
    assert!(cases.len() >= 30);
    for (text, (place, key, message, hint)) in &cases {
        let refusals = load_text(text, &[]).expect_err(text);
        let first = &refusals.0[0];
        assert_eq!(first.origin.to_string(), *place, "{text}\n{refusals}");
        assert_eq!(first.key, *key, "{text}\n{refusals}");
        assert!(first.message.contains(message), "{text}\n{refusals}");
        assert!(first.hint.contains(hint), "{text}\n{refusals}");
    }
}

#[test]
fn all_wrong_values_are_told_at_once() {
    let refusals = load_text(
        "[server]\nlisten = \"x\"\nhead_seconds = 0\n[store]\nurl = \"x\"\n",
        &[],
    );
    let refusals = refusals.unwrap_err();
    insta::assert_snapshot!(refusals, @r#"
    n.toml:2: server.listen: "x" is not an address with a port
      hint: for example `listen = "127.0.0.1:8080"`
    n.toml:3: server.head_seconds: 0 is out of range
      hint: 1 to 600
    n.toml:5: store.url: "x" is no store that is known here
      hint: `sqlite:PATH`, `postgres://USER:PASSWORD@HOST/DATABASE` or `memory:`
    "#);
}

/// The password of a database is neither told nor written out.
#[test]
fn the_password_of_a_store_is_kept() {
    let known = "[store]\nurl = \"postgres://ada:s3cret@db/nuncio?password=s3cret\"\n";
    let loaded = load_text(known, &[]).unwrap();
    let dumped = dump(&loaded);
    assert!(!dumped.contains("s3cret"), "{dumped}");
    assert!(
        dumped.contains("\nurl = \"postgres://db/nuncio\"  # "),
        "{dumped}"
    );
    assert!(
        dumped.contains("n.toml:2, without user and password\n"),
        "{dumped}"
    );
    let nats = "wake_ups = \"nats://ada:s3cret@bus:4222,nats://s3cret@bus2\"\n";
    let dumped = dump(&load_text(&format!("{known}{nats}"), &[]).unwrap());
    assert!(!dumped.contains("s3cret"), "{dumped}");
    let unknown = "[store]\nurl = \"mysql://ada:s3cret@db/nuncio\"\n";
    let refusal = load_text(unknown, &[]).unwrap_err().to_string();
    assert!(refusal.contains("mysql://db/nuncio"), "{refusal}");
    assert!(!refusal.contains("s3cret"), "{refusal}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let sources = Sources {
        file: Some("/nowhere/n.toml".into()),
        ..Sources::default()
    };
    let refusals = load(sources).unwrap_err();
    assert!(
        refusals
            .to_string()
            .starts_with("/nowhere/n.toml: failed to read: "),
        "{refusals}"
    );
}

#[test]
fn flags_go_before_variables_before_the_file_before_defaults() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\nworkers = 1\ndrain_seconds = 1\n";
    let environment = [
        ("NUNCIO__SERVER__LISTEN", "127.0.0.1:2"),
        ("NUNCIO__SERVER__WORKERS", "2"),
        ("NUNCIO__SERVER__CORS", "[\"https://a.example\"]"),
        ("UNRELATED", "x"),
    ];
    let flags = vec![("server.listen", "--listen", Value::from("127.0.0.1:3"))];
    let loaded = load_with(file, &environment, flags, false).unwrap();
    let server = &loaded.config.server;
    assert_eq!(server.listen, "127.0.0.1:3");
    assert_eq!(
        (server.workers, server.drain_seconds, server.head_seconds),
        (2, 1, 10)
    );
    assert_eq!(server.cors, ["https://a.example"]);
    let shown = dump(&loaded);
    for line in [
        "listen = \"127.0.0.1:3\"  # --listen",
        "workers = 2  # environment variable NUNCIO__SERVER__WORKERS",
        "n.toml:4",
        "head_seconds = 10  # default",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
}

#[test]
fn a_wrong_variable_or_flag_is_named() {
    let refusals = load_text("", &[("NUNCIO__SERVER__WORKRS", "2")]).unwrap_err();
    assert_eq!(
        refusals.to_string(),
        "environment variable NUNCIO__SERVER__WORKRS: server.workrs: unknown key `workrs`\n  \
         hint: did you mean `workers`?"
    );
    let flags = vec![("server.listen", "--listen", Value::from("here"))];
    let refusals = load_with("", &[], flags, false).unwrap_err();
    assert!(
        refusals
            .to_string()
            .starts_with("--listen: server.listen: "),
        "{refusals}"
    );
}

/// BR-146, BR-098.
#[test]
fn the_network_needs_keys_or_a_wish_and_is_warned_about_its_address() {
    let keys = format!(
        "[[auth.keys]]\nsha256 = \"{}\"\ncaller = \"a\"\n",
        "a".repeat(64)
    );
    let open = "[server]\nlisten = \"0.0.0.0:80\"\n";
    let with_keys = load_text(&format!("{open}{keys}"), &[]).unwrap();
    assert_eq!(with_keys.warnings.len(), 1, "{:?}", with_keys.warnings);
    assert!(with_keys.warnings[0].contains("public_url"));
    assert!(!with_keys.config.auth.takes_anonymous());
    let wished = load_with(open, &[], Vec::new(), true).unwrap();
    assert!(wished.warnings[0].contains("--insecure"));
    let named = format!("{open}public_url = \"https://a.example/x/\"\n{keys}");
    assert_eq!(
        load_text(&named, &[]).unwrap().warnings,
        Vec::<String>::new()
    );
    assert!(load_text("", &[]).unwrap().config.auth.takes_anonymous());
}

#[test]
fn a_dump_is_a_configuration_that_says_the_same() {
    let text = format!(
        "[server]\npublic_url = \"https://a.example\"\n[[auth.keys]]\nsha256 = \"{}\"\ncaller = \"a\"\n{}",
        "b".repeat(64),
        include_str!("../../../../examples/interop.toml")
    );
    let loaded = load_text(&text, &[]).unwrap();
    let again = load_text(&dump(&loaded), &[]).unwrap();
    assert_eq!(again.config, loaded.config);
}

#[test]
fn the_examples_are_accepted() {
    for example in [
        "tck",
        "damaged-order",
        "interop",
        "process-agent/nuncio",
        "flows",
    ] {
        let path = format!(
            "{}/../../examples/{example}.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let loaded = load(Sources {
            file: Some(path.into()),
            ..Sources::default()
        })
        .unwrap();
        assert_eq!(loaded.warnings, Vec::<String>::new());
        for agent in loaded.config.agents() {
            let agent = agent.build(&workshop(&[])).unwrap();
            let direct = agent.info().answers_directly;
            let tasks_only = ["damaged-order", "process-agent/nuncio", "flows"];
            let may = !tasks_only.contains(&example);
            assert_eq!(direct, may, "{example}");
        }
    }
}

/// What agents are made with here: a way to this machine, and these variables.
fn workshop(environment: &[(&str, &str)]) -> Workshop {
    let allowed = "127.0.0.0/8".parse().unwrap();
    let policy = nuncio_egress::EgressPolicy::default().allowing(allowed);
    let variables = environment.iter();
    let store = std::sync::Arc::new(nuncio_store::MemoryStore::default());
    let surroundings = nuncio_engine::Environment::system([7; 32]);
    let engine =
        nuncio_engine::Engine::new(store, surroundings, nuncio_engine::Settings::default());
    Workshop {
        environment: variables
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        egress: nuncio_egress::Egress::new(policy).unwrap(),
        models: super::Models::new(),
        mcp: Default::default(),
        openapi: Default::default(),
        layers: Default::default(),
        agents: engine.directory(),
    }
}

/// What is wrong with the one agent of a file, each with its key.
fn faults_of_agent(lines: &str) -> Vec<(String, String)> {
    let text = format!("[[agents]]\nid = \"a\"\n{lines}\n");
    let refusals = load_text(&text, &[]).unwrap_err().0;
    let told = |refusal: super::Refusal| (refusal.key, refusal.message);
    refusals.into_iter().map(told).collect()
}

#[test]
fn a_process_agent_is_checked() {
    for (lines, key, message) in [
        ("", "agents[0].command", "there is no program to start"),
        ("command = [\"\"]", "agents[0].command", "no program"),
        (
            "command = [\"x\"]\nenv = { \"A=B\" = \"c\" }",
            "agents[0].env",
            "no name",
        ),
        (
            "command = [\"x\"]\nenv = { A = 1 }",
            "agents[0].env.A",
            "invalid type",
        ),
        (
            "command = [\"x\"]\nmode = \"once\"",
            "agents[0].mode",
            "unknown value",
        ),
        (
            "command = [\"x\"]\nmax_processes = 0",
            "agents[0].max_processes",
            "out of range",
        ),
        (
            "command = [\"x\"]\nmax_line_bytes = 1",
            "agents[0].max_line_bytes",
            "out of range",
        ),
        (
            "command = [\"x\"]\ngrace_seconds = 601",
            "agents[0].grace_seconds",
            "out of range",
        ),
        (
            "command = [\"x\"]\nrules = [{ otherwise = true }]",
            "agents[0].rules",
            "an agent of kind process has no rules",
        ),
    ] {
        let found = faults_of_agent(&format!("kind = \"process\"\n{lines}"));
        assert_eq!(found.len(), 1, "{lines}: {found:?}");
        assert_eq!(found[0].0, key, "{lines}");
        assert!(found[0].1.contains(message), "{lines}: {found:?}");
    }
    let misplaced = faults_of_agent("kind = \"echo\"\ncommand = [\"x\"]\nenv = { A = \"b\" }");
    let keys: Vec<_> = misplaced.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["agents[0].command", "agents[0].env"]);
}

/// Where tasks are kept elsewhere, nothing can be said of tasks here.
#[test]
fn an_agent_that_calls_are_passed_on_to_is_checked() {
    let agent = "kind = \"a2a\"\nurl = \"http://a/\"\npass_through = true";
    for line in [
        "waiting = \"poll\"",
        "resumable = true",
        "queues_messages = false",
        "trace_content = true",
        "layers = [\"l\"]\n[layers.l]\nkind = \"audit\"\nfile = \"a\"",
        "reruns = true",
        "overrides = { params = true }",
    ] {
        let key = line.split(' ').next().unwrap();
        let found = faults_of_agent(&format!("{agent}\n{line}"));
        let named: Vec<_> = found.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(named, [format!("agents[0].{key}")], "{line}: {found:?}");
    }
    let found = faults_of_agent("kind = \"echo\"\npass_through = true");
    assert_eq!(found[0].0, "agents[0].pass_through");
    assert!(found[0].1.contains("kind echo has no pass_through"));
}

#[test]
fn an_http_agent_is_checked() {
    for (lines, key, message) in [
        ("", "agents[0].url", "is missing"),
        (
            "url = \"ftp://a\"",
            "agents[0].url",
            "not an http or https URL",
        ),
        (
            "url = \"http://u:p@a/\"",
            "agents[0].url",
            "without user and password",
        ),
        (
            "url = \"http://a/\"\nheaders = { Host = \"x\" }",
            "agents[0].headers",
            "belongs to the connection",
        ),
        (
            "url = \"http://a/\"\nforward_headers = [\"X-Forwarded-For\"]",
            "agents[0].forward_headers",
            "belongs to",
        ),
        (
            "url = \"http://a/\"\nforward_headers = [\"a b\"]",
            "agents[0].forward_headers",
            "no name",
        ),
        (
            "url = \"http://a/\"\nbearer = \"x\"\nheaders = { authorization = \"x\" }",
            "agents[0].bearer",
            "one Authorization",
        ),
        (
            "url = \"http://a/\"\nretries = 101",
            "agents[0].retries",
            "out of range",
        ),
        (
            "url = \"http://a/\"\ntimeout_seconds = 0",
            "agents[0].timeout_seconds",
            "out of range",
        ),
        (
            "url = \"http://a/\"\ncommand = [\"x\"]",
            "agents[0].command",
            "an agent of kind http has no command",
        ),
    ] {
        let found = faults_of_agent(&format!("kind = \"http\"\n{lines}"));
        assert_eq!(found.len(), 1, "{lines}: {found:?}");
        assert_eq!(found[0].0, key, "{lines}");
        assert!(found[0].1.contains(message), "{lines}: {found:?}");
    }
}

const ECHO: &str = "[[agents]]\nid = \"b\"\nkind = \"echo\"";

#[test]
fn a_flow_is_checked() {
    for (lines, key, message) in [
        ("kind = \"sequence\"", "agents[0].members", "nobody to ask"),
        (
            "kind = \"sequence\"\nmembers = [\"x\"]",
            "agents[0].members[0]",
            "there is no agent \"x\"",
        ),
        (
            "kind = \"sequence\"\nmembers = [\"a\"]",
            "agents[0].members[0]",
            "made of itself",
        ),
        (
            "kind = \"sequence\"\nmembers = [\"b\"]\njoin = \"all\"",
            "agents[0].join",
            "kind sequence has no join",
        ),
        (
            "kind = \"sequence\"\nmembers = [\"b\"]\nemit = \"some\"",
            "agents[0].emit",
            "unknown value",
        ),
        (
            "kind = \"parallel\"\nmembers = [\"b\"]\njoin = 2",
            "agents[0].join",
            "out of range",
        ),
        (
            "kind = \"parallel\"\nmembers = [\"b\"]\njoin = \"some\"",
            "agents[0].join",
            "unknown value",
        ),
        (
            "kind = \"parallel\"\nmembers = [\"b\"]\njoin = -1",
            "agents[0].join",
            "out of range",
        ),
        (
            "kind = \"parallel\"\nmembers = [\"b\"]\nconcurrency = 0",
            "agents[0].concurrency",
            "out of range",
        ),
        (
            "kind = \"repeat\"\nmembers = [\"b\"]\nuntil = {}",
            "agents[0].until",
            "no condition",
        ),
        (
            "kind = \"repeat\"\nmembers = [\"b\"]\nlimit = 0",
            "agents[0].limit",
            "out of range",
        ),
        ("kind = \"route\"", "agents[0].routes", "nothing chooses"),
        (
            "kind = \"route\"\nrouter = \"b\"",
            "agents[0].members",
            "nobody to choose",
        ),
        (
            "kind = \"route\"\nrouter = \"b\"\nroutes = [{ agent = \"b\" }]",
            "agents[0].routes",
            "either rules",
        ),
        (
            "kind = \"route\"\nroutes = [{ agent = \"x\" }]",
            "agents[0].routes[0].agent",
            "no agent \"x\"",
        ),
        (
            "kind = \"route\"\nroutes = [{ agent = \"b\" }, { agent = \"b\", when = { turn = 1 } }]",
            "agents[0].routes[0]",
            "never taken",
        ),
        ("kind = \"graph\"", "agents[0].nodes", "needs nodes"),
        (
            "kind = \"graph\"\nnodes = { n = \"b\" }",
            "agents[0].start",
            "must be a node",
        ),
        (
            "kind = \"graph\"\nnodes = { n = \"b\" }\nstart = \"n\"\nedges = [{ from = \"n\", to = \"m\" }]",
            "agents[0].edges[0].to",
            "no node \"m\"",
        ),
        (
            "kind = \"graph\"\nnodes = { n = \"b\" }\nstart = \"n\"\nedges = [{ from = \"n\", to = \"end\" }, { from = \"n\", to = \"n\" }]",
            "agents[0].edges[1]",
            "never taken",
        ),
        (
            "kind = \"graph\"\nnodes = { end = \"b\" }\nstart = \"end\"",
            "agents[0].nodes",
            "cannot be the name",
        ),
    ] {
        let found = faults_of_agent(&format!("{lines}\n{ECHO}"));
        assert_eq!(found.len(), 1, "{lines}: {found:?}");
        assert_eq!(found[0].0, key, "{lines}");
        assert!(found[0].1.contains(message), "{lines}: {found:?}");
    }
}

#[test]
fn flows_that_are_made_of_each_other_are_refused() {
    let found = faults_of_agent(
        "kind = \"sequence\"\nmembers = [\"b\"]\n\
         [[agents]]\nid = \"b\"\nkind = \"route\"\nrouter = \"c\"\nmembers = [\"a\"]\n\
         [[agents]]\nid = \"c\"\nkind = \"echo\"",
    );
    let keys: Vec<_> = found.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["agents[0].members[0]", "agents[1].members[0]"]);
    assert!(found[0].1.contains("by way of b"), "{found:?}");
}

#[test]
fn whom_a_model_hands_over_to_is_checked() {
    let lines = |to: &str| {
        format!(
            "kind = \"model\"\nmodel = \"m\"\nhand_over = [{to}]\nforward_headers = [\"X-Team\"]\n\
             [[agents]]\nid = \"b\"\nkind = \"model\"\nmodel = \"m\"\nhand_over = [\"a\"]\n\
             [models.m]\nprovider = \"fake\"\nrules = [{{ otherwise = true, reply = [] }}]"
        )
    };
    let good = format!("[[agents]]\nid = \"a\"\n{}\n", lines("\"b\""));
    assert!(load_text(&good, &[]).is_ok(), "it may go back");
    for (to, message) in [("\"x\"", "there is no agent \"x\""), ("\"a\"", "already")] {
        let found = faults_of_agent(&lines(to));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "agents[0].hand_over[0]");
        assert!(found[0].1.contains(message), "{found:?}");
    }
    let found = faults_of_agent("kind = \"echo\"\nhand_over = [\"b\"]");
    assert!(found[0].1.contains("no hand_over"), "{found:?}");
}

#[test]
fn layers_are_checked() {
    const AGENT: &str = "[[agents]]\nid = \"a\"\nkind = \"echo\"\n";
    for (lines, key, message) in [
        (
            "kind = \"redact\"",
            "layers.x.patterns",
            "nothing is looked for",
        ),
        (
            "kind = \"redact\"\npatterns = [\"a\", \"(b\"]",
            "layers.x.patterns[1]",
            "\"(b\" is no pattern: unclosed group",
        ),
        (
            "kind = \"redact\"\npatterns = [\"(?:a{1000}){1000}\"]",
            "layers.x.patterns[0]",
            "size limit",
        ),
        (
            "kind = \"redact\"\npatterns = [\"a\"]\nat = []",
            "layers.x.at",
            "looks nowhere",
        ),
        (
            "kind = \"redact\"\npatterns = [\"a\"]\nat = [\"inside\"]",
            "layers.x.at[0]",
            "unknown value",
        ),
        (
            "kind = \"redact\"\npatterns = [\"a\"]\nmessage = \"no\"",
            "layers.x.message",
            "a layer of kind redact has no message",
        ),
        (
            "kind = \"refuse\"\npatterns = [\"a\"]",
            "layers.x.message",
            "no words to refuse with",
        ),
        ("kind = \"quota\"", "layers.x", "nothing is limited"),
        (
            "kind = \"quota\"\nruns_per_minute = 0",
            "layers.x.runs_per_minute",
            "out of range",
        ),
        (
            "kind = \"quota\"\ntokens_per_day = 0",
            "layers.x.tokens_per_day",
            "out of range",
        ),
        (
            "kind = \"audit\"\ntokens_per_day = 1",
            "layers.x.tokens_per_day",
            "a layer of kind audit has no tokens_per_day",
        ),
        ("kind = \"what\"", "layers.x.kind", "unknown value"),
        (
            "kind = \"audit\"\nfil = \"x\"",
            "layers.x.fil",
            "unknown key",
        ),
    ] {
        let refusals = load_text(&format!("{AGENT}[layers.x]\n{lines}\n"), &[]);
        let refusals = refusals.unwrap_err().0;
        assert_eq!(refusals.len(), 1, "{lines}: {refusals:?}");
        assert_eq!(refusals[0].key, key, "{lines}");
        assert!(
            refusals[0].message.contains(message),
            "{lines}: {refusals:?}"
        );
    }
    let layers =
        "[layers.trail]\nkind = \"audit\"\n[layers.fair]\nkind = \"quota\"\ntokens_per_day = 1";
    for (named, key, message) in [
        (
            "\"trail\", \"nope\"",
            "agents[0].layers[1]",
            "there is no layer \"nope\"; there are: fair, trail",
        ),
        ("\"trail\", \"trail\"", "agents[0].layers[1]", "twice"),
        ("\"fair\"", "agents[0].layers[0]", "this agent has none"),
    ] {
        let found = faults_of_agent(&format!("kind = \"echo\"\nlayers = [{named}]\n{layers}"));
        assert_eq!(found.len(), 1, "{named}: {found:?}");
        assert_eq!(found[0].0, key, "{named}");
        assert!(found[0].1.contains(message), "{named}: {found:?}");
    }
    let found = faults_of_agent("kind = \"echo\"\nlayers = [\"x\"]");
    assert!(found[0].1.contains("[layers] is empty"), "{found:?}");
}

#[test]
fn an_openai_agent_is_checked() {
    let good = "url = \"http://h/v1\"\nmodel = \"m\"";
    for (lines, key, message) in [
        ("model = \"m\"", "agents[0].url", "is missing"),
        ("url = \"http://h/v1\"", "agents[0].model", "which model"),
        (
            &format!("{good}\nretries = 101"),
            "agents[0].retries",
            "out of range",
        ),
        (
            &format!("{good}\nparams = {{ temperature = 9.0 }}"),
            "agents[0].params.temperature",
            "out of range",
        ),
        (
            &format!("{good}\nask_user = true"),
            "agents[0].ask_user",
            "kind openai has no ask_user",
        ),
    ] {
        let found = faults_of_agent(&format!("kind = \"openai\"\n{lines}"));
        assert_eq!(found.len(), 1, "{lines}: {found:?}");
        assert_eq!(found[0].0, key, "{lines}");
        assert!(found[0].1.contains(message), "{lines}: {found:?}");
    }
}

#[test]
fn an_http_agent_is_only_made_where_it_may_go() {
    let made = |url: &str, bearer: &str| {
        let text = format!(
            "[[agents]]\nid = \"a\"\nkind = \"http\"\nurl = \"{url}\"\nbearer = {bearer}\n"
        );
        let loaded = load_text(&text, &[]).unwrap();
        let made = loaded.config.agents[0].build(&workshop(&[("KEY", "s3cret\n")]));
        made.err()
    };
    assert_eq!(made("http://127.0.0.1:1/", "\"x\""), None);
    let told = made("http://10.0.0.1/", "\"x\"").unwrap();
    assert!(told.contains("outbound.allow_networks"), "{told}");
    let told = made("http://127.0.0.1:1/", "{ env = \"KEY\" }").unwrap();
    assert!(
        told.contains("characters") && !told.contains("s3cret"),
        "{told}"
    );
}

#[test]
fn the_secrets_of_an_agent_are_not_written_out() {
    let text = "[[agents]]\nid = \"a\"\nkind = \"process\"\ncommand = [\"x\"]\n\
                env = { KEY = \"s3cret\", OTHER = { env = \"NAME\" } }\n";
    let loaded = load_text(text, &[]).unwrap();
    let dumped = dump(&loaded);
    assert!(!dumped.contains("s3cret"), "{dumped}");
    assert!(dumped.contains("KEY = \"***\""), "{dumped}");
    let missing = loaded.config.agents[0].build(&workshop(&[]));
    let told = missing.err().unwrap();
    assert_eq!(
        told,
        "env.OTHER: the server has no environment variable NAME"
    );
}

#[test]
fn the_schema_knows_every_section() {
    let schema: serde_json::Value = serde_json::from_str(&Config::schema()).unwrap();
    for section in [
        "server",
        "store",
        "auth",
        "engine",
        "webhooks",
        "outbound",
        "retention",
        "log",
        "layers",
        "agents",
    ] {
        assert!(schema["properties"][section].is_object(), "{section}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn a_model_agent_is_checked() {
    const MODEL: &str =
        "[models.main]\nprovider = \"fake\"\nrules = [{ otherwise = true, reply = [] }]\n";
    for (agent, models, key, message) in [
        ("", MODEL, "agents[0].model", "has no model"),
        (
            "model = \"other\"",
            MODEL,
            "agents[0].model",
            "there are: main",
        ),
        (
            "model = \"main\"",
            "",
            "agents[0].model",
            "[models] is empty",
        ),
        (
            "model = \"main\"\nparams = { temperature = 3.0 }",
            MODEL,
            "agents[0].params.temperature",
            "out of range",
        ),
        (
            "model = \"main\"\nparams = { max_tokens = 0 }",
            MODEL,
            "agents[0].params.max_tokens",
            "nothing",
        ),
        (
            "model = \"main\"\nparams = { heat = 1 }",
            MODEL,
            "agents[0].params.heat",
            "unknown",
        ),
        (
            "model = \"main\"\nbudgets = { max_turns = 0 }",
            MODEL,
            "agents[0].budgets.max_turns",
            "out of range",
        ),
        (
            "model = \"main\"\noutput_schema = { type = 7 }",
            MODEL,
            "agents[0].output_schema",
            "",
        ),
        (
            "model = \"main\"\nurl = \"http://a\"",
            MODEL,
            "agents[0].url",
            "an agent of kind model has no url",
        ),
        (
            "model = \"main\"",
            "[models.main]\nprovider = \"openia\"\n",
            "models.main.provider",
            "no provider \"openia\"",
        ),
        (
            "model = \"main\"",
            "[models.main]\nprovider = \"openai\"\nrules = [{ otherwise = true, reply = [] }]\n",
            "models.main.rules",
            "only a scripted model",
        ),
        (
            "model = \"main\"",
            "[models.main]\nprovider = \"fake\"\nrules = [{ reply = [] }]\n",
            "models.main.rules[0]",
            "neither",
        ),
        (
            "model = \"main\"",
            "[models.main]\nprovider = \"openai\"\nbase_url = \"here\"\n",
            "models.main.base_url",
            "not an http",
        ),
        (
            "model = \"main\"",
            "[models.main]\nprovider = \"openai\"\nfallback = [\"b\"]\n",
            "models.main.fallback[0]",
            "there is no model \"b\"",
        ),
        (
            "model = \"main\"",
            "[models.main]\nprovider = \"openai\"\nprices = { input = -1.0, output = 0.0 }\n",
            "models.main.prices.input",
            "no price",
        ),
    ] {
        let text = format!("{models}[[agents]]\nid = \"a\"\nkind = \"model\"\n{agent}\n");
        let refusals = load_text(&text, &[]).unwrap_err().0;
        assert_eq!(refusals.len(), 1, "{agent} {models}: {refusals:?}");
        assert_eq!(refusals[0].key, key, "{agent} {models}");
        assert!(refusals[0].message.contains(message), "{refusals:?}");
    }
}

#[test]
fn a_model_agent_is_made_and_its_key_is_not_shown() {
    let text = "[models.main]\nprovider = \"openai\"\nmodel = \"gpt\"\nkey = \"s3cret\"\n\
        base_url = \"http://127.0.0.1:9/v1\"\nfallback = [\"other\"]\n\
        [models.other]\nprovider = \"anthropic\"\nkey = { env = \"KEY\" }\n\
        [[agents]]\nid = \"a\"\nkind = \"model\"\nmodel = \"main\"\nask_user = true\n";
    let loaded = load_text(text, &[]).unwrap();
    assert!(!dump(&loaded).contains("s3cret"));
    let made = |environment: &[(&str, &str)]| {
        let mut workshop = workshop(environment);
        workshop.models = loaded.config.models.clone();
        loaded.config.agents[0].build(&workshop)
    };
    let agent = made(&[("KEY", "k")]).unwrap();
    assert!(agent.info().resumable);
    assert!(agent.info().input_modes.contains(&"image/png".to_owned()));
    let missing = made(&[]).err().unwrap();
    assert_eq!(
        missing,
        "models.other: key: the server has no environment variable KEY"
    );
}

/// Which places a model may be at is said by `[outbound]`, as for every other service.
#[test]
fn a_model_in_a_network_that_is_not_allowed_is_refused() {
    let text = "[models.main]\nprovider = \"openai\"\nbase_url = \"http://10.1.2.3/v1\"\n\
        [[agents]]\nid = \"a\"\nkind = \"model\"\nmodel = \"main\"\n";
    let loaded = load_text(text, &[]).unwrap();
    let mut workshop = workshop(&[]);
    workshop.models = loaded.config.models.clone();
    let why = loaded.config.agents[0].build(&workshop).err().unwrap();
    assert!(why.contains("outbound.allow_networks"), "{why}");
}

#[test]
fn mcp_servers_are_checked() {
    for (server, mcp, key, message) in [
        ("", "time", "mcp.time", "neither"),
        (
            "command = [\"x\"]\nurl = \"http://a\"",
            "time",
            "mcp.time",
            "both",
        ),
        ("command = [\"\"]", "time", "mcp.time.command", "no program"),
        ("url = \"ftp://a\"", "time", "mcp.time.url", "not an http"),
        (
            "command = [\"x\"]\nbearer = \"t\"",
            "time",
            "mcp.time.bearer",
            "a program has no",
        ),
        (
            "url = \"http://a\"\nenv = { A = \"b\" }",
            "time",
            "mcp.time.env",
            "a service has no",
        ),
        (
            "url = \"http://a\"\nheaders = { Host = \"b\" }",
            "time",
            "mcp.time.headers",
            "belongs to",
        ),
        (
            "command = [\"x\"]\ntimeout_seconds = 0",
            "time",
            "mcp.time.timeout_seconds",
            "out of range",
        ),
        (
            "command = [\"x\"]",
            "clock",
            "agents[0].mcp[0]",
            "there are: time",
        ),
        (
            "command = [\"x\"]\nsecret = 1",
            "time",
            "mcp.time.secret",
            "unknown",
        ),
    ] {
        let text = format!(
            "[models.main]\nprovider = \"openai\"\n[mcp.time]\n{server}\n\
             [[agents]]\nid = \"a\"\nkind = \"model\"\nmodel = \"main\"\nmcp = [\"{mcp}\"]\n"
        );
        let refusals = load_text(&text, &[]).unwrap_err().0;
        assert_eq!(refusals.len(), 1, "{server}: {refusals:?}");
        assert_eq!(refusals[0].key, key, "{server}");
        assert!(refusals[0].message.contains(message), "{refusals:?}");
    }
}

#[test]
fn secrets_of_mcp_servers_are_not_shown() {
    let text = "[mcp.a]\nurl = \"http://a/\"\nbearer = \"s3cret\"\nheaders = { X-Key = \"s3cret\" }\n\
        [mcp.b]\ncommand = [\"x\"]\nenv = { KEY = \"s3cret\" }\n";
    let loaded = load_text(text, &[]).unwrap();
    assert!(
        !dump(&loaded).contains("s3cret") && !format!("{:?}", loaded.config).contains("s3cret")
    );
}

#[test]
fn services_of_openapi_are_checked() {
    let good = "document = \"orders.json\"\nbase_url = \"https://orders.example/v1\"\n";
    for (service, name, key, message) in [
        (
            "document = \"a\"\nbase_url = \"ftp://a\"",
            "orders",
            "openapi.orders.base_url",
            "not an http",
        ),
        (
            &format!("{good}headers = {{ Host = \"b\" }}"),
            "orders",
            "openapi.orders.headers",
            "belongs to",
        ),
        (
            &format!("{good}timeout_seconds = 0"),
            "orders",
            "openapi.orders.timeout_seconds",
            "out of range",
        ),
        (good, "others", "agents[0].openapi[0]", "there are: orders"),
        (
            &format!("{good}secret = 1"),
            "orders",
            "openapi.orders.secret",
            "unknown",
        ),
    ] {
        let text = format!(
            "[models.main]\nprovider = \"openai\"\n[openapi.orders]\n{service}\n\
             [[agents]]\nid = \"a\"\nkind = \"model\"\nmodel = \"main\"\nopenapi = [\"{name}\"]\n"
        );
        let refusals = load_text(&text, &[]).unwrap_err().0;
        assert_eq!(refusals.len(), 1, "{service}: {refusals:?}");
        assert_eq!(refusals[0].key, key, "{service}");
        assert!(refusals[0].message.contains(message), "{refusals:?}");
    }
    let secret =
        format!("[openapi.a]\n{good}bearer = \"s3cret\"\nheaders = {{ X-Key = \"s3cret\" }}\n");
    let loaded = load_text(&secret, &[]).unwrap();
    assert!(
        !dump(&loaded).contains("s3cret") && !format!("{:?}", loaded.config).contains("s3cret")
    );
}
