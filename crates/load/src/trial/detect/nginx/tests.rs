//! Configurations as people have them, and what is made of each.

use crate::trial::Surroundings;
use crate::trial::detect::testing::{Folder, surroundings};

/// Somebody listens on 3000 and 4000.
fn running() -> Surroundings {
    let occupied = ["127.0.0.1:3000", "[::]:4000"].map(|address| address.parse().unwrap()).to_vec();
    Surroundings { occupied, ..surroundings() }
}

fn onehopfile(conf: &str) -> String {
    let folder =
        Folder::of(&[("nginx.conf", conf), ("dist/index.html", ""), ("dist/a.js", ""), ("static/a", "")]);
    match folder.detect("nginx.conf", &running()) {
        Ok(setup) => {
            let notes: String = setup.notes.iter().map(|note| format!("note: {note}\n")).collect();
            folder.plain(&format!("{}asks {}\n{notes}", setup.onehopfile, setup.paths.join(" ")))
        }
        Err(error) => folder.plain(&format!("{error}\n")),
    }
}

#[test]
fn a_location_that_passes_its_prefix_on_without_it_is_measured_as_it_is_and_tuned() {
    let folder = Folder::of(&[
        (
            "nginx.conf",
            "user www-data;\nevents { worker_connections 1024; }\nhttp {\n  include mime.types;\n  server {\n    \
             listen 80 default_server;\n    server_name example.com;\n    location /nws/ {\n      \
             proxy_pass http://localhost:3000/;\n      proxy_set_header Host $host;\n      \
             proxy_set_header X-Real-IP $remote_addr;\n      \
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n    }\n  }\n}\n",
        ),
        ("package.json", r#"{"scripts": {"start": "node server.js"}}"#),
        (
            "server.js",
            "const app = express(); app.get('/latest', (q, s) => s.end()); app.listen(process.env.PORT);",
        ),
    ]);
    let setup = folder.detect("", &surroundings()).unwrap();
    insta::assert_snapshot!(folder.show(&setup));
}

#[test]
fn locations_become_blocks_of_an_onehopfile() {
    let cases = [
        "location / { proxy_pass http://localhost:3000; }",
        "root dist; location / { try_files $uri $uri/ /index.html; }\nlocation /api/ { proxy_pass http://127.0.0.1:3000; proxy_read_timeout 5m; proxy_set_header Host $host; }",
        "root dist; location / { try_files $uri @app; }\nlocation @app { proxy_pass http://localhost:3000; }",
        "location /api { proxy_pass http://localhost:3000/api; }\nlocation /v1/ { proxy_pass http://localhost:4000/base/; }",
        "location /api/ { rewrite ^/api/(.*)$ /$1 break; proxy_pass http://localhost:3000; }",
        "location = /health { return 200 'fine'; default_type text/plain; }\nlocation /old { return 301 https://$host/new; }\nlocation = /gone { return 410; }",
        "gzip on; access_log off; root dist; index index.html index.htm; add_header X-A \"b c\"; location ~* \\.(js|css)$ { expires 1y; }\nlocation ~ /\\.ht { deny all; }",
        "location /static/ { alias static/; autoindex on; }\nlocation ^~ /x { root dist; }\nclient_max_body_size 10m; limit_req zone=a; charset utf-8;",
    ];
    let shown: Vec<String> = cases.iter().map(|conf| format!("{conf}\n\n{}", onehopfile(conf))).collect();
    insta::assert_snapshot!(shown.join("\n----\n"));
}

#[test]
fn what_cannot_be_carried_over_is_refused_with_its_line() {
    let cases = [
        "location / { proxy_pass http://localhost:5000; }",
        "location / { proxy_pass http://application:3000; }",
        "location / {\n proxy_pass http://$target; }",
        "upstream a { server localhost:3000; server localhost:4000; } server { location / { proxy_pass http://a; } }",
        "location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }",
        "location ~ ^/v[0-9]+/ { proxy_pass http://localhost:3000; }",
        "root /nowhere/at/all; location / { }",
        "location / { auth_basic x; proxy_pass http://localhost:3000; }",
        "location /api/ { proxy_pass http://localhost:3000/api; }",
        "location / { if ($host = a) { return 403; } proxy_pass http://localhost:3000; }",
        "location / { proxy_pass http://localhost:3000",
        "location / { proxy_pass 'http://localhost:3000; }",
        "}",
        "include nowhere.conf;",
        "include ../../../../../../../../etc/passwd;",
        "worker_processes 1;",
    ];
    let shown: Vec<String> = cases.iter().map(|conf| format!("{conf}\n{}", onehopfile(conf))).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_server_with_tls_is_measured_without_and_its_redirect_is_left_out() {
    let conf = "events {}\nhttp { access_log off;\nupstream app { server 127.0.0.1:3000; keepalive 8; }\n\
        server { listen 80; return 301 https://$host$request_uri; }\n\
        server { listen 443 ssl; ssl_certificate /nowhere/a.pem; ssl_certificate_key /nowhere/b.pem;\n\
        location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header Connection \"\"; } } }\n";
    let folder = Folder::of(&[("nginx.conf", conf)]);
    let setup = folder.detect("nginx.conf", &running()).unwrap();
    insta::assert_snapshot!(folder.show(&setup));
    assert_eq!(setup.today.len(), 1, "it keeps its connections already");
}

#[test]
fn a_file_that_includes_itself_is_refused() {
    assert!(
        onehopfile("include nginx.conf;").contains("too many blocks")
            || onehopfile("include nginx.conf;").contains("files are included")
    );
    let deep = format!("{}{}", "a {".repeat(5000), "}".repeat(5000));
    assert!(onehopfile(&deep).contains("too many blocks"));
}
