//! The applications of a configuration so far, as later lines and `crate::check::Context` need them.

use std::sync::Arc;

use crate::checked::App;

/// The applications of a configuration so far.
#[derive(Debug, Default)]
pub(crate) struct KnownApps {
    pub(super) apps: Vec<Arc<App>>,
    /// Those without a name, beside the name that each was given.
    pub(super) unnamed: Vec<(App, String)>,
    /// Those of this site that give out a cookie.
    pub(super) with_cookie: Vec<Arc<App>>,
    /// What each line is called, by the number of the line.
    pub(crate) by_line: Vec<(u32, Arc<App>)>,
    /// This site is reached without TLS, if only at one of its addresses.
    pub(in crate::directives) is_plain: bool,
}

impl KnownApps {
    /// What follows is another site, of other hosts.
    pub(crate) fn begin_site(&mut self, is_plain: bool) {
        self.with_cookie.clear();
        self.is_plain = is_plain;
    }

    /// Another application with a data folder of this name.
    pub(super) fn with_data(&self, name: &str, but: &App) -> Option<&App> {
        let has_it = |app: &&Arc<App>| app.data.as_ref().is_some_and(|data| data.name == name);
        self.apps.iter().filter(|app| app.name != but.name).find(has_it).map(|app| &**app)
    }

    /// One `Arc` for applications that are the same in everything.
    pub(super) fn shared(&mut self, app: App) -> Arc<App> {
        let known = self.apps.iter().find(|known| ***known == app).map(Arc::clone);
        known.unwrap_or_else(|| {
            let app = Arc::new(app);
            self.apps.push(Arc::clone(&app));
            app
        })
    }
}
