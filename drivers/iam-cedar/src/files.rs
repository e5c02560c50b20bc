//! The files, read anew for each call: a change counts at once, and a bad one changes nothing.

use std::{
    fs::File,
    io::Read as _,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{InvalidPolicies, Settings, policies::Policies};

/// Most bytes of one file.
const MOST: u64 = 4 * 1024 * 1024;

/// What was read last, whatever became of it.
#[derive(Debug, PartialEq, Eq)]
struct Texts {
    policies: String,
    entities: Option<String>,
}

struct Held {
    seen: Result<Texts, InvalidPolicies>,
    good: Arc<Policies>,
}

pub(crate) struct Files {
    settings: Settings,
    held: Mutex<Held>,
}

impl Files {
    /// With good files, or not at all.
    pub(crate) fn open(settings: Settings) -> Result<Self, InvalidPolicies> {
        let texts = read(&settings)?;
        let good = Arc::new(judge(&settings, &texts)?);
        let held = Mutex::new(Held { seen: Ok(texts), good });
        Ok(Self { settings, held })
    }

    /// The policies of now: the files', or the last good ones while the files are not.
    pub(crate) fn current(&self) -> Arc<Policies> {
        let seen = read(&self.settings);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.seen == seen {
            return Arc::clone(&held.good);
        }
        let judged = match &seen {
            Ok(texts) => judge(&self.settings, texts),
            Err(error) => Err(error.clone()),
        };
        match judged {
            Ok(policies) => {
                tracing::info!("the policies were reloaded");
                held.good = Arc::new(policies);
            }
            // Said once for each state of the files. The text is that of the operator's own file.
            Err(error) => tracing::error!(%error, "the policies are refused, and the last good ones stay in force"),
        }
        held.seen = seen;
        Arc::clone(&held.good)
    }
}

fn judge(settings: &Settings, texts: &Texts) -> Result<Policies, InvalidPolicies> {
    let entities = settings.entities.as_deref().zip(texts.entities.as_deref());
    Policies::read((&settings.policies, &texts.policies), entities)
}

fn read(settings: &Settings) -> Result<Texts, InvalidPolicies> {
    Ok(Texts {
        policies: text(&settings.policies)?,
        entities: settings.entities.as_deref().map(text).transpose()?,
    })
}

fn text(path: &Path) -> Result<String, InvalidPolicies> {
    let unreadable = || InvalidPolicies::Unreadable { path: path.to_owned() };
    let mut text = String::new();
    let file = File::open(path).map_err(|_| unreadable())?;
    let read = file
        .take(MOST + 1)
        .read_to_string(&mut text)
        .map_err(|_| unreadable())?;
    if read as u64 > MOST {
        return Err(unreadable());
    }
    Ok(text)
}
