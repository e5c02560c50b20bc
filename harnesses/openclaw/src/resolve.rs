//! Which Harness a document selects, and with which model (spec/contracts 10.3, spec/drivers 0.5).

use std::collections::BTreeSet;

use occ_core::{driver::DocumentProblem, resource::Document};

use crate::{
    document::Place,
    message,
    model::{Choice, ModelRef, Written, further_models},
};

/// This Harness's id.
pub const OPENCLAW: &str = "openclaw";
/// The Codex Harness's id.
pub const CODEX: &str = "codex";

/// What a document selects.
#[derive(Debug, Clone)]
pub struct Resolution<'a> {
    /// The Harness's id.
    pub harness: &'static str,
    /// The primary model and where it is written; none when the document names no model.
    pub model: Option<Written<'a>>,
}

/// The parts of a document that select a Harness.
struct Selecting<'a> {
    defaults: Place<'a>,
    entries: Vec<(&'a str, Place<'a>)>,
    providers: Place<'a>,
    plugins: Place<'a>,
}

/// Resolves the Harness.
pub fn resolve(document: &Document) -> Result<Resolution<'_>, DocumentProblem> {
    let root = Place::root(document);
    let agents = root.get("agents")?;
    let list = agents.get("list")?;
    if !list.items()?.is_empty() {
        return Err(list.problem(message::AGENTS_LIST));
    }
    let selecting = Selecting {
        defaults: agents.get("defaults")?,
        entries: agents.get("entries")?.members()?,
        providers: root.path(&["models", "providers"])?,
        plugins: root.path(&["plugins", "entries"])?,
    };
    let (primary, fallbacks) = selecting.choice()?;
    let Some((model, written)) = primary else {
        return Ok(Resolution {
            harness: OPENCLAW,
            model: None,
        });
    };
    let harness = selecting.harness(model, &written)?;
    selecting.check_fallbacks(model, &fallbacks, harness)?;
    selecting.check_selectable(model, &fallbacks, harness)?;
    selecting.check_catalog(model, &fallbacks)?;
    Ok(Resolution {
        harness,
        model: Some((model, written)),
    })
}

impl<'a> Selecting<'a> {
    /// The one primary model of every agent of the gateway, and every fallback.
    fn choice(&self) -> Result<(Option<Written<'a>>, Vec<Written<'a>>), DocumentProblem> {
        let defaults = Choice::at(&self.defaults.get("model")?)?;
        let mut fallbacks = defaults.fallbacks;
        let mut primary: Option<Written<'a>> = None;
        for (_, entry) in &self.entries {
            let own = Choice::at(&entry.get("model")?)?;
            fallbacks.extend(own.fallbacks);
            let Some(chosen) = own.primary.or_else(|| defaults.primary.clone()) else {
                continue;
            };
            match &primary {
                Some((model, _)) if *model != chosen.0 => return Err(chosen.1.problem(message::ENTRY_MODEL)),
                Some(_) => {}
                None => primary = Some(chosen),
            }
        }
        Ok((primary.or(defaults.primary), fallbacks))
    }

    /// Every runtime id that applies to a model, and where it is written.
    fn candidates(&self, model: ModelRef<'_>) -> Result<Vec<(&'a str, Place<'a>)>, DocumentProblem> {
        let any = format!("{}/*", model.provider);
        let mut places = Vec::new();
        for agent in self.entries.iter().map(|(_, entry)| entry).chain([&self.defaults]) {
            let models = agent.get("models")?;
            places.extend([models.get(model.text)?, models.get(&any)?, agent.clone()]);
        }
        let row = self.providers.get(model.provider)?;
        for listed in row.get("models")?.items()? {
            if listed.get("id")?.text()? == Some(model.name) {
                places.push(listed);
            }
        }
        places.push(row);
        let mut found = Vec::new();
        for place in places {
            let id = place.path(&["agentRuntime", "id"])?;
            found.extend(id.text()?.map(|text| (text, id)));
        }
        Ok(found)
    }

    /// The runtime that the document demands for a model; `None` when it demands none.
    fn demanded(&self, model: ModelRef<'_>) -> Result<Option<&'static str>, DocumentProblem> {
        let candidates = self.candidates(model)?;
        let mut demanded = None;
        for (id, place) in &candidates {
            let known = match *id {
                OPENCLAW => OPENCLAW,
                CODEX => CODEX,
                _ => return Err(place.problem(message::RUNTIME_UNKNOWN)),
            };
            if demanded.is_some_and(|first| first != known) {
                return Err(place.problem(message::RUNTIME_CONFLICT));
            }
            demanded = Some(known);
        }
        Ok(demanded)
    }

    fn harness(&self, model: ModelRef<'_>, written: &Place<'a>) -> Result<&'static str, DocumentProblem> {
        let harness = match self.demanded(model)? {
            Some(demanded) => demanded,
            None if self.needs_explicit_runtime(model.provider)? => {
                return Err(written.problem(message::RUNTIME_REQUIRED));
            }
            None => OPENCLAW,
        };
        match (harness, model.provider) {
            (CODEX, "codex") => Ok(harness),
            (CODEX, "openai") if self.codex_is_connected()? => Ok(harness),
            (CODEX, _) => Err(written.problem(message::CODEX_MODEL)),
            (_, "codex") => Err(written.problem(message::CODEX_RUNTIME)),
            _ => Ok(harness),
        }
    }

    /// Providers for which OpenClaw alone would choose a runtime by what else is installed or configured.
    fn needs_explicit_runtime(&self, provider: &str) -> Result<bool, DocumentProblem> {
        let named = self.providers.get(provider)?.exists() || self.plugins.get(provider)?.exists();
        Ok(named || matches!(provider, "openai" | "codex"))
    }

    fn codex_is_connected(&self) -> Result<bool, DocumentProblem> {
        let plugin = self.plugins.get("codex")?;
        let enabled = plugin.get("enabled")?.boolean()? == Some(true);
        let transport = plugin.path(&["config", "appServer", "transport"])?;
        Ok(enabled && transport.text()? == Some("websocket"))
    }

    fn check_fallbacks(
        &self,
        primary: ModelRef<'_>,
        fallbacks: &[Written<'a>],
        harness: &'static str,
    ) -> Result<(), DocumentProblem> {
        for (model, written) in fallbacks {
            if model.provider != primary.provider {
                return Err(written.problem(message::FALLBACK_PROVIDER));
            }
            if self.harness(*model, written)? != harness {
                return Err(written.problem(message::FALLBACK_RUNTIME));
            }
        }
        Ok(())
    }

    /// Models that a user of the gateway can switch to.
    fn selectable(&self) -> Result<Vec<Written<'a>>, DocumentProblem> {
        let mut selectable = Vec::new();
        for agent in self.entries.iter().map(|(_, entry)| entry).chain([&self.defaults]) {
            for (text, place) in agent.get("models")?.members()? {
                let model = ModelRef::parse(text).ok_or_else(|| place.problem(message::MODEL))?;
                selectable.push((model, place));
            }
        }
        Ok(selectable)
    }

    fn check_selectable(
        &self,
        primary: ModelRef<'_>,
        fallbacks: &[Written<'a>],
        harness: &'static str,
    ) -> Result<(), DocumentProblem> {
        for (model, place) in self.selectable()? {
            if model == primary || fallbacks.iter().any(|(fallback, _)| *fallback == model) {
                continue;
            }
            if model.provider != primary.provider {
                return Err(place.problem(message::SELECTABLE_PROVIDER));
            }
            if self.demanded(model)? != Some(harness) {
                return Err(place.problem(message::SELECTABLE_RUNTIME));
            }
        }
        Ok(())
    }

    /// The provider's row lists only what the Agent can come to use: everything else would be a way around the checks above.
    fn check_catalog(&self, primary: ModelRef<'_>, fallbacks: &[Written<'a>]) -> Result<(), DocumentProblem> {
        let mut used: BTreeSet<&str> = [primary.text].into();
        used.extend(fallbacks.iter().map(|(model, _)| model.text));
        used.extend(self.selectable()?.iter().map(|(model, _)| model.text));
        for agent in self.entries.iter().map(|(_, entry)| entry).chain([&self.defaults]) {
            used.extend(further_models(agent)?);
        }
        if used.contains(format!("{}/*", primary.provider).as_str()) {
            return Ok(());
        }
        for listed in self.providers.get(primary.provider)?.get("models")?.items()? {
            let id = listed.get("id")?;
            let listed = id.text()?.map(|name| format!("{}/{name}", primary.provider));
            if listed.is_some_and(|model| !used.contains(model.as_str())) {
                return Err(id.problem(message::CATALOG));
            }
        }
        Ok(())
    }
}
