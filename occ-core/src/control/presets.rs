//! Presets: launch settings that are copied into Agent drafts.

use super::{
    Answer, Caller, ControlPlane, CreatePreset, Page, PageQuery, UpdatePreset, namespaces::ACCEPTING, operation::Scope,
    page::Cursor,
};
use crate::{
    admission::{Refusal, draft},
    driver::{Action, ResourceKind, ResourceRef},
    iam::ExactResource,
    id::{NamespaceId, PresetId},
    resource::{OwnedKind, Preset},
    store::{Change, Expect, OwnedRow, Slice, Write},
};

const KIND: OwnedKind = OwnedKind::Preset;

impl ControlPlane {
    /// Creates a Preset. What its settings name is not looked up: they are checked where they are used.
    pub async fn create_preset(&self, caller: &Caller, namespace: NamespaceId, input: CreatePreset) -> Answer<Preset> {
        let op = self.operation(caller, "openclaw.presets.create", Scope::Namespace(namespace));
        op.answer(async {
            let collection = ResourceRef::collection(ResourceKind::Preset, namespace);
            let id = PresetId::random();
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Create, collection.clone()).await?;
                if let Some(first) = op.first_answer().await? {
                    return Ok(first);
                }
                draft::accepts(&self.live_namespace(namespace).await?)?;
                let preset = Preset {
                    id,
                    namespace_id: namespace,
                    name: input.name.clone(),
                    settings: input.settings.clone(),
                    created_at: self.store.now().await?,
                };
                let change = Change::new()
                    .expect(Expect::NamespaceStatus(namespace, ACCEPTING))
                    .write(Write::Owned(OwnedRow::preset(&preset, 1)))
                    .audit(op.event(ResourceRef::preset(namespace, id), &allowed));
                if tries.commit(op.answering(change, &preset)?).await? {
                    return Ok(preset);
                }
            }
        })
        .await
    }

    /// A Preset.
    pub async fn preset(&self, caller: &Caller, namespace: NamespaceId, id: PresetId) -> Answer<Preset> {
        let op = self.operation(caller, "openclaw.presets.read", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::preset(namespace, id)).await?;
            Ok(self.preset_row(namespace, id).await?.try_into()?)
        })
        .await
    }

    /// The Presets that the caller may read, by creation. Needs `namespace:read`.
    pub async fn presets(&self, caller: &Caller, namespace: NamespaceId, query: &PageQuery) -> Answer<Page<Preset>> {
        let op = self.operation(caller, "openclaw.presets.list", Scope::Namespace(namespace));
        op.answer(async {
            op.require(Action::Read, ResourceRef::namespace(namespace)).await?;
            self.live_namespace(namespace).await?;
            let read = async |slice: Slice| self.store.all_owned(namespace, KIND, &slice).await;
            let page = op.page(query, read, Cursor::of, |row| row.resource(ResourceKind::Preset));
            Ok(page.await?.decoded(Preset::try_from)?)
        })
        .await
    }

    /// Replaces what the change names: the name, the settings, or both.
    pub async fn update_preset(
        &self,
        caller: &Caller,
        namespace: NamespaceId,
        id: PresetId,
        input: UpdatePreset,
    ) -> Answer<Preset> {
        let op = self.operation(caller, "openclaw.presets.update", Scope::Namespace(namespace));
        op.answer(async {
            let resource = ResourceRef::preset(namespace, id);
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Update, resource.clone()).await?;
                let row = self.preset_row(namespace, id).await?;
                let version = row.version;
                let mut preset = Preset::try_from(row)?;
                if let Some(name) = &input.name {
                    preset.name = name.clone();
                }
                if let Some(settings) = &input.settings {
                    preset.settings = settings.clone();
                }
                let change = Change::new()
                    .expect(Expect::Owned(id.to_string(), version))
                    .write(Write::UpdateOwned(OwnedRow::preset(&preset, version + 1)))
                    .audit(op.event(resource.clone(), &allowed));
                if tries.commit(change).await? {
                    return Ok(preset);
                }
            }
        })
        .await
    }

    /// Deletes a Preset. Agents that were made from it are not concerned.
    pub async fn delete_preset(&self, caller: &Caller, namespace: NamespaceId, id: PresetId) -> Answer<()> {
        let op = self.operation(caller, "openclaw.presets.delete", Scope::Namespace(namespace));
        op.answer(async {
            let resource = ResourceRef::preset(namespace, id);
            let exact = ExactResource {
                kind: ResourceKind::Preset,
                id: id.to_string(),
            };
            let mut tries = op.tries();
            loop {
                let allowed = op.require(Action::Delete, resource.clone()).await?;
                let row = self.preset_row(namespace, id).await?;
                let change = Change::new()
                    .expect(Expect::Owned(id.to_string(), row.version))
                    .write(Write::DeleteOwned(KIND, id.to_string()));
                let event = op.event(resource.clone(), &allowed);
                let change = self
                    .with_exact_bindings_removed(change, namespace, &exact, event)
                    .await?;
                if tries.commit(change).await? {
                    return Ok(());
                }
            }
        })
        .await
    }

    async fn preset_row(&self, namespace: NamespaceId, id: PresetId) -> Answer<OwnedRow> {
        let row = self.store.owned(namespace, KIND, &id.to_string()).await?;
        row.ok_or_else(Refusal::not_found)
    }
}
