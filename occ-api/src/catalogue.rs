//! The operations of the API as data: what each takes and gives. Bodies are limited by it, and the OpenAPI document is made of it.

use axum::http::Method;
use occ_core::{
    control::{
        AccountView, AuditVerification, ConfigurationSummary, CreateAccessBinding, CreateAgent, CreateAgentToken,
        CreateConfiguration, CreateNamespace, CreatePreset, CreateRole, CreateServiceAccount, CreateServiceKey,
        CredentialSourceView, CredentialStatus, DiagnosticsView, InstallationView, LogsView, NamedPlugin, PersonView,
        PluginCatalogView, RegisterCredentialSource, RevisionRead, RevisionView, SecretView, ServicePrincipalView,
        SetAccountCredential, StopView, UpdateAgent, UpdateConfiguration, UpdateCredentialSource, UpdatePreset,
        WithdrawalView, WorkspaceFileView, WrittenFile,
    },
    driver::{GatewayEndpoint, PluginDetails},
    iam::{AccessBinding, Role},
    resource::{Agent, Backend, Configuration, Namespace, Preset},
    status::Deployment,
};
use schemars::JsonSchema;

use crate::{
    audit::AuditRecordView,
    operation::{Operation, Parameter, of, op},
    routes::{
        AgentTokenReply, CodeReply, CreateAccount, CreateSecret, CreatedAccount, IssuedKeyView, LinkIdentity, Live,
        NewPassword, Ready, SavedAgentSchema, SessionReply, UpdateAccount, UpdateSecret, WithCode, WithPassword,
        WriteWorkspaceFile,
    },
};

const KIB: usize = 1024;

const LIMIT: Parameter = Parameter {
    name: "limit",
    about: "At most so many items; 200 when not said.",
    pattern: None,
};
const CURSOR: Parameter = Parameter {
    name: "cursor",
    about: "Where the page begins: `meta.nextCursor` of the page before.",
    pattern: Some(r"^-?[0-9]{1,19}\.([A-Za-z0-9_-]|~[0-9a-f]{2}){1,800}$"),
};
const PAGED: &[Parameter] = &[LIMIT, CURSOR];
const WAIT: &[Parameter] = &[Parameter {
    name: "wait",
    about: "Answer once the deployment is over, or after so many seconds: `30s`, at most `60s`.",
    pattern: Some("^([1-9]|[1-5][0-9]|60)s$"),
}];
const LOGS: &[Parameter] = &[
    Parameter {
        name: "lines",
        about: "The last so many lines; 200 when not said.",
        pattern: None,
    },
    Parameter {
        name: "component",
        about: "The component; the gateway when not said.",
        pattern: Some("^[A-Za-z0-9._~:@-]{1,64}$"),
    },
];
const AUDIT: &[Parameter] = &[
    LIMIT,
    Parameter {
        name: "before",
        about: "Only what was recorded before the record with this sequence.",
        pattern: Some("^[0-9]{1,18}$"),
    },
    Parameter {
        name: "namespace",
        about: "Only what concerns this Namespace.",
        pattern: Some("^ns_[0-9a-f-]{36}$"),
    },
    Parameter {
        name: "actor",
        about: "Only what this principal did.",
        pattern: Some("^[A-Za-z0-9._~:@-]{1,200}$"),
    },
    Parameter {
        name: "action",
        about: "Only this action, such as `openclaw.agents.deploy`.",
        pattern: Some("^[a-z_.]{1,100}$"),
    },
    Parameter {
        name: "resource",
        about: "Only what concerns the resource with this id.",
        pattern: Some("^[A-Za-z0-9._~:@-]{1,200}$"),
    },
    Parameter {
        name: "outcome",
        about: "Only what ended so: `success`, `failure` or `denied`.",
        pattern: Some("^(success|failure|denied)$"),
    },
];

const CALLBACK: &[Parameter] = &[
    Parameter {
        name: "code",
        about: "What the session is begun with.",
        pattern: Some("^.{1,4096}$"),
    },
    Parameter {
        name: "state",
        about: "What binds it to the browser that began.",
        pattern: Some("^[0-9a-f]{64}$"),
    },
];

/// What signing in may be refused with besides.
const SIGN_IN: &[u16] = &[400, 401, 403, 409, 413, 429];

macro_rules! below {
    ($rest:literal) => {
        concat!("/namespaces/{namespace}", $rest)
    };
}
macro_rules! agent {
    ($rest:literal) => {
        concat!("/namespaces/{namespace}/agents/{agent}", $rest)
    };
}

use crate::operation::Gives::{Document, Events, Html, List, Nothing, One, Page, Redirect};

/// Every operation (spec/engine 2.1). Bodies without a limit of their own take 64 KiB.
pub(crate) static OPERATIONS: &[Operation] = &[
    op(
        "getHealth",
        "GET",
        "/healthz",
        One(of::<Live>),
        "Whether the process lives.",
    )
    .open(),
    op(
        "getReadiness",
        "GET",
        "/readyz",
        One(of::<Ready>),
        "Whether the store answers.",
    )
    .open(),
    op("getOpenApi", "GET", "/openapi.json", Document, "This document.").open(),
    op("getDocs", "GET", "/docs", Html, "This document as a page.").open(),
    op(
        "getInstallation",
        "GET",
        "/installation",
        One(of::<InstallationView>),
        "The Installation, and what its drivers offer to whoever makes Agents.",
    ),
    op(
        "listAuditRecords",
        "GET",
        "/installation/audit",
        List(of::<AuditRecordView>),
        "Recorded events, the newest first.",
    )
    .query(AUDIT),
    op(
        "verifyAudit",
        "POST",
        "/installation/audit/verification",
        One(of::<AuditVerification>),
        "Follows the audit's chain of seals from its beginning.",
    ),
    op(
        "listBackends",
        "GET",
        "/backends",
        List(of::<Backend>),
        "The configured Backends.",
    ),
    op(
        "createServiceKey",
        "POST",
        "/service-keys",
        One(of::<IssuedKeyView>),
        "Makes a service key, which is shown this once.",
    )
    .taking(64 * KIB, of::<CreateServiceKey>)
    .status(201)
    .also(&[404, 409]),
    op(
        "revokeServiceKey",
        "DELETE",
        "/service-keys/{key}",
        Nothing,
        "Ends a service key.",
    )
    .status(204)
    .also(&[409]),
    op(
        "signInWithPassword",
        "POST",
        "/api/auth/sign-in/email",
        One(of::<SessionReply>),
        "Begins a session with a password. The session is in the cookie of the answer.",
    )
    .taking(64 * KIB, of::<WithPassword>)
    .open()
    .also(SIGN_IN),
    op(
        "signInWithCode",
        "POST",
        "/api/auth/sign-in/code",
        One(of::<SessionReply>),
        "Begins a session with a one-time code, which is used up, and sets the password.",
    )
    .taking(64 * KIB, of::<WithCode>)
    .open()
    .also(SIGN_IN),
    op(
        "beginOidcSignIn",
        "GET",
        "/api/auth/oidc/sign-in",
        Redirect,
        "Sends a browser to the identity provider.",
    )
    .status(303)
    .open()
    .also(&[400, 403, 413, 501]),
    op(
        "finishOidcSignIn",
        "GET",
        "/api/auth/oidc/callback",
        Redirect,
        "Begins a session for whom the identity provider has recognised. The session is in the cookie of the answer.",
    )
    .query(CALLBACK)
    .status(303)
    .open()
    .also(&[400, 401, 403, 409, 413, 429, 501]),
    op(
        "signOut",
        "POST",
        "/api/auth/sign-out",
        Nothing,
        "Ends the caller's session.",
    )
    .status(204)
    .own()
    .also(&[409]),
    op(
        "changePassword",
        "POST",
        "/api/auth/password",
        One(of::<SessionReply>),
        "Changes the caller's own password. Every session of the account ends, and a new one begins.",
    )
    .taking(64 * KIB, of::<NewPassword>)
    .own()
    .also(&[409, 429]),
    op(
        "getSession",
        "GET",
        "/api/auth/session",
        One(of::<SessionReply>),
        "The caller's session.",
    )
    .own(),
    op(
        "listAccounts",
        "GET",
        "/accounts",
        Page(of::<PersonView>),
        "The accounts of people.",
    )
    .query(PAGED),
    op(
        "createAccount",
        "POST",
        "/accounts",
        One(of::<CreatedAccount>),
        "Makes an account, with a password or a one-time code that is shown this once. Nothing is granted to a new person.",
    )
    .taking(64 * KIB, of::<CreateAccount>)
    .status(201)
    .also(&[404, 409, 429]),
    op(
        "updateAccount",
        "PATCH",
        "/accounts/{person}",
        One(of::<PersonView>),
        "Says whether an account may be used. When it may not, its sessions end.",
    )
    .taking(64 * KIB, of::<UpdateAccount>)
    .also(&[409]),
    op(
        "createAccountCode",
        "POST",
        "/accounts/{person}/code",
        One(of::<CodeReply>),
        "Makes a one-time code for an account, which is shown this once.",
    )
    .status(201)
    .also(&[409]),
    op(
        "linkAccountIdentity",
        "POST",
        "/accounts/{person}/identities",
        Nothing,
        "Links an account to who an identity provider says that its person is.",
    )
    .taking(64 * KIB, of::<LinkIdentity>)
    .status(204)
    .also(&[409]),
    op(
        "unlinkAccountIdentities",
        "DELETE",
        "/accounts/{person}/identities",
        Nothing,
        "Takes every identity from an account, and ends its sessions.",
    )
    .status(204)
    .also(&[409]),
    op(
        "endAccountSessions",
        "DELETE",
        "/accounts/{person}/sessions",
        Nothing,
        "Ends every session of an account.",
    )
    .status(204)
    .also(&[409]),
    op(
        "listNamespaces",
        "GET",
        "/namespaces",
        Page(of::<Namespace>),
        "The Namespaces that the caller may read.",
    )
    .query(PAGED),
    op(
        "createNamespace",
        "POST",
        "/namespaces",
        One(of::<Namespace>),
        "Creates a Namespace and queues its provisioning.",
    )
    .taking(64 * KIB, of::<CreateNamespace>)
    .status(201)
    .once(),
    op("getNamespace", "GET", below!(""), One(of::<Namespace>), "A Namespace."),
    op(
        "deleteNamespace",
        "DELETE",
        below!(""),
        One(of::<Namespace>),
        "Deletes an empty Namespace.",
    )
    .status(202)
    .also(&[409]),
    op(
        "listConfigurations",
        "GET",
        below!("/configurations"),
        Page(of::<ConfigurationSummary>),
        "The Configurations that the caller may read, without their documents.",
    )
    .query(PAGED),
    op(
        "createConfiguration",
        "POST",
        below!("/configurations"),
        One(of::<Configuration>),
        "Creates a Configuration.",
    )
    .taking(448 * KIB, of::<CreateConfiguration>)
    .status(201)
    .once(),
    op(
        "getConfiguration",
        "GET",
        below!("/configurations/{configuration}"),
        One(of::<Configuration>),
        "A Configuration with its document.",
    )
    .tagged(),
    op(
        "updateConfiguration",
        "PATCH",
        below!("/configurations/{configuration}"),
        One(of::<Configuration>),
        "Makes a Configuration's next generation.",
    )
    .taking(448 * KIB, of::<UpdateConfiguration>)
    .tagged(),
    op(
        "deleteConfiguration",
        "DELETE",
        below!("/configurations/{configuration}"),
        Nothing,
        "Deletes a Configuration that no Agent refers to.",
    )
    .status(204)
    .also(&[409]),
    op(
        "listSecrets",
        "GET",
        below!("/secrets"),
        Page(of::<SecretView>),
        "The Secrets that the caller may read; never their values.",
    )
    .query(PAGED),
    op(
        "createSecret",
        "POST",
        below!("/secrets"),
        One(of::<SecretView>),
        "Stores a Secret.",
    )
    .taking(400 * KIB, of::<CreateSecret>)
    .status(201)
    .once(),
    op(
        "getSecret",
        "GET",
        below!("/secrets/{secret}"),
        One(of::<SecretView>),
        "A Secret and who refers to it; never its value.",
    ),
    op(
        "updateSecret",
        "PATCH",
        below!("/secrets/{secret}"),
        One(of::<SecretView>),
        "Replaces a Secret's value.",
    )
    .taking(400 * KIB, of::<UpdateSecret>)
    .also(&[409]),
    op(
        "deleteSecret",
        "DELETE",
        below!("/secrets/{secret}"),
        Nothing,
        "Deletes a Secret that nobody refers to.",
    )
    .status(204)
    .also(&[409]),
    op(
        "listServiceAccounts",
        "GET",
        below!("/service-accounts"),
        Page(of::<AccountView>),
        "The service accounts that the caller may read.",
    )
    .query(PAGED),
    op(
        "createServiceAccount",
        "POST",
        below!("/service-accounts"),
        One(of::<AccountView>),
        "Creates a service account.",
    )
    .taking(64 * KIB, of::<CreateServiceAccount>)
    .status(201)
    .once(),
    op(
        "getServiceAccount",
        "GET",
        below!("/service-accounts/{account}"),
        One(of::<AccountView>),
        "A service account.",
    ),
    op(
        "deleteServiceAccount",
        "DELETE",
        below!("/service-accounts/{account}"),
        Nothing,
        "Deletes a service account that no Agent refers to, and what a driver issued for it.",
    )
    .status(204)
    .also(&[409]),
    op(
        "setServiceAccountCredential",
        "PATCH",
        below!("/service-accounts/{account}/credential"),
        One(of::<AccountView>),
        "Replaces a service account's imported credential.",
    )
    .taking(64 * KIB, of::<SetAccountCredential>)
    .also(&[409]),
    op(
        "issueServiceAccountCredential",
        "POST",
        below!("/service-accounts/{account}/credentials"),
        One(of::<AccountView>),
        "Has the selected Service Account Driver issue a token, which nobody is shown.",
    )
    .taking(64 * KIB, of::<NoFields>)
    .status(201)
    .once(),
    op(
        "listCredentialSources",
        "GET",
        below!("/credential-sources"),
        Page(of::<CredentialSourceView>),
        "The credential sources that the caller may read.",
    )
    .query(PAGED),
    op(
        "registerCredentialSource",
        "POST",
        below!("/credential-sources"),
        One(of::<CredentialSourceView>),
        "Registers a credential source with the selected Credential Gateway, which keeps a copy of its credentials.",
    )
    .taking(128 * KIB, of::<RegisterCredentialSource>)
    .status(201)
    .once(),
    op(
        "getCredentialSource",
        "GET",
        below!("/credential-sources/{source}"),
        One(of::<CredentialSourceView>),
        "A credential source, and how the gateway sees it now.",
    ),
    op(
        "updateCredentialSource",
        "PATCH",
        below!("/credential-sources/{source}"),
        One(of::<CredentialSourceView>),
        "Reads a credential source's credentials anew.",
    )
    .taking(64 * KIB, of::<UpdateCredentialSource>)
    .also(&[409]),
    op(
        "deleteCredentialSource",
        "DELETE",
        below!("/credential-sources/{source}"),
        Nothing,
        "Deletes a credential source that no Agent uses, and the gateway's copy of its credentials.",
    )
    .status(204)
    .also(&[409]),
    op(
        "withdrawCredentialSource",
        "POST",
        agent!("/credential-sources/{source}/withdraw"),
        One(of::<WithdrawalView>),
        "Asks for the end of the use of a credential source by the Agent's selected version, which a worker brings about.",
    )
    .status(202)
    .also(&[409]),
    op(
        "getCredentialSourceWithdrawal",
        "GET",
        agent!("/credential-sources/{source}/withdrawal"),
        One(of::<WithdrawalView>),
        "How far the withdrawal of a credential source from the Agent's selected version is.",
    )
    .also(&[409]),
    op(
        "listPresets",
        "GET",
        below!("/presets"),
        Page(of::<Preset>),
        "The Presets that the caller may read.",
    )
    .query(PAGED),
    op(
        "createPreset",
        "POST",
        below!("/presets"),
        One(of::<Preset>),
        "Creates a Preset.",
    )
    .taking(64 * KIB, of::<CreatePreset>)
    .status(201)
    .once(),
    op(
        "getPreset",
        "GET",
        below!("/presets/{preset}"),
        One(of::<Preset>),
        "A Preset.",
    ),
    op(
        "updatePreset",
        "PATCH",
        below!("/presets/{preset}"),
        One(of::<Preset>),
        "Changes a Preset.",
    )
    .taking(64 * KIB, of::<UpdatePreset>)
    .also(&[409]),
    op(
        "deletePreset",
        "DELETE",
        below!("/presets/{preset}"),
        Nothing,
        "Deletes a Preset.",
    )
    .status(204)
    .also(&[409]),
    op(
        "listAgents",
        "GET",
        below!("/agents"),
        Page(of::<SavedAgentSchema>),
        "The Agents that the caller may read.",
    )
    .query(PAGED),
    op(
        "createAgent",
        "POST",
        below!("/agents"),
        One(of::<Agent>),
        "Creates an Agent; starts nothing.",
    )
    .taking(448 * KIB, of::<CreateAgent>)
    .status(201)
    .once()
    .also(&[501]),
    op(
        "discoverPlugins",
        "POST",
        below!("/agents/plugins"),
        One(of::<PluginCatalogView>),
        "The plugins that a new Agent can select, and the policies that can be carried out.",
    )
    .taking(64 * KIB, of::<NoFields>)
    .also(&[501]),
    op(
        "discoverPlugin",
        "POST",
        below!("/agents/plugins/details"),
        One(of::<PluginDetails>),
        "One plugin with its tools.",
    )
    .taking(64 * KIB, of::<NamedPlugin>)
    .also(&[501]),
    op(
        "discoverAgentPlugins",
        "POST",
        agent!("/plugins"),
        One(of::<PluginCatalogView>),
        "The plugins that the Agent can select, and the policies that can be carried out.",
    )
    .taking(64 * KIB, of::<NoFields>)
    .also(&[501]),
    op(
        "discoverAgentPlugin",
        "POST",
        agent!("/plugins/details"),
        One(of::<PluginDetails>),
        "One plugin with its tools.",
    )
    .taking(64 * KIB, of::<NamedPlugin>)
    .also(&[501]),
    op("getAgent", "GET", agent!(""), One(of::<SavedAgentSchema>), "An Agent.").tagged(),
    op(
        "updateAgent",
        "PATCH",
        agent!(""),
        One(of::<Agent>),
        "Changes an Agent's draft; queues nothing.",
    )
    .taking(64 * KIB, of::<UpdateAgent>)
    .tagged()
    .also(&[501]),
    op(
        "deleteAgent",
        "DELETE",
        agent!(""),
        One(of::<Agent>),
        "Deletes an Agent, or repeats a failed deletion.",
    )
    .status(202)
    .also(&[409]),
    op(
        "deployAgent",
        "POST",
        agent!("/deploy"),
        One(of::<RevisionView>),
        "Saves the draft as the next version and queues its deployment.",
    )
    .status(202)
    .once()
    .also(&[501]),
    op(
        "stopAgent",
        "POST",
        agent!("/stop"),
        One(of::<Agent>),
        "Sets the desired state to stopped and queues the stop; `Location` says where it can be followed.",
    )
    .status(202)
    .also(&[409]),
    op(
        "getAgentStop",
        "GET",
        agent!("/stops/{operation}"),
        One(of::<StopView>),
        "How far a requested stop is. Once it succeeded, nothing of the Agent runs.",
    ),
    op(
        "getAgentGateway",
        "GET",
        agent!("/gateway"),
        One(of::<GatewayEndpoint>),
        "Where the selected version's gateway is.",
    )
    .also(&[409, 501]),
    op(
        "readWorkspaceFile",
        "GET",
        agent!("/workspace/files/{name}"),
        One(of::<WorkspaceFileView>),
        "A file of the live workspace.",
    )
    .also(&[409]),
    op(
        "writeWorkspaceFile",
        "PUT",
        agent!("/workspace/files/{name}"),
        One(of::<WrittenFile>),
        "Creates or replaces a file of the live workspace.",
    )
    // 16 KiB, each byte perhaps a six-byte escape (seed).
    .taking(97 * KIB, of::<WriteWorkspaceFile>)
    .also(&[409]),
    op(
        "getRuntimeCredentials",
        "GET",
        agent!("/runtime-credentials"),
        One(of::<CredentialStatus>),
        "Whether the Agent's transport credentials exist.",
    )
    .also(&[501]),
    op(
        "provisionRuntimeCredentials",
        "POST",
        agent!("/runtime-credentials"),
        One(of::<CredentialStatus>),
        "Creates the Agent's transport credentials before its first version.",
    )
    .also(&[409, 501]),
    op(
        "listAgentRevisions",
        "GET",
        agent!("/revisions"),
        Page(of::<RevisionRead>),
        "The versions of an Agent that the caller may read, oldest first.",
    )
    .query(PAGED),
    op(
        "getAgentRevision",
        "GET",
        agent!("/revisions/{revision}"),
        One(of::<RevisionRead>),
        "A version.",
    ),
    op(
        "redeployAgentRevision",
        "POST",
        agent!("/revisions/{revision}/redeploy"),
        One(of::<RevisionView>),
        "Saves what an earlier version saved as the next version, admitted anew, and queues its deployment.",
    )
    .status(202)
    .once()
    .also(&[501]),
    op(
        "getAgentDeployment",
        "GET",
        agent!("/deployments/{revision}"),
        One(of::<Deployment>),
        "What became of a deployment.",
    )
    .query(WAIT),
    op(
        "watchAgentDeployment",
        "GET",
        agent!("/deployments/{revision}/events"),
        Events(of::<Deployment>),
        "A deployment, each time it changes, until it is over.",
    ),
    op(
        "diagnoseAgentDeployment",
        "POST",
        agent!("/deployments/{revision}/diagnostics"),
        One(of::<DiagnosticsView>),
        "Fresh checks of a version.",
    ),
    op(
        "getRuntimeLogs",
        "GET",
        agent!("/deployments/{revision}/runtime/logs"),
        One(of::<LogsView>),
        "A version's recent log lines, redacted.",
    )
    .query(LOGS)
    .also(&[501, 504]),
    op(
        "listRoles",
        "GET",
        below!("/iam/roles"),
        List(of::<Role>),
        "The Roles of a Namespace.",
    ),
    op(
        "createRole",
        "POST",
        below!("/iam/roles"),
        One(of::<Role>),
        "Creates a Role of a Namespace.",
    )
    .taking(64 * KIB, of::<CreateRole>)
    .status(201)
    .also(&[409]),
    op(
        "getRole",
        "GET",
        below!("/iam/roles/{role}"),
        One(of::<Role>),
        "A Role.",
    ),
    op(
        "deleteRole",
        "DELETE",
        below!("/iam/roles/{role}"),
        Nothing,
        "Deletes a Role that no access binding names.",
    )
    .status(204)
    .also(&[409]),
    op(
        "listAccessBindings",
        "GET",
        below!("/iam/access-bindings"),
        List(of::<AccessBinding>),
        "The access bindings of a Namespace.",
    ),
    op(
        "createAccessBinding",
        "POST",
        below!("/iam/access-bindings"),
        One(of::<AccessBinding>),
        "Grants a Role of a Namespace, or one of the Installation for a Namespace.",
    )
    .taking(64 * KIB, of::<CreateAccessBinding>)
    .status(201)
    .also(&[409]),
    op(
        "getAccessBinding",
        "GET",
        below!("/iam/access-bindings/{binding}"),
        One(of::<AccessBinding>),
        "An access binding.",
    ),
    op(
        "deleteAccessBinding",
        "DELETE",
        below!("/iam/access-bindings/{binding}"),
        Nothing,
        "Deletes an access binding.",
    )
    .status(204)
    .also(&[409]),
    op(
        "listInstallationRoles",
        "GET",
        "/iam/roles",
        List(of::<Role>),
        "The Roles of the Installation, which are confined to no Namespace.",
    ),
    op(
        "createInstallationRole",
        "POST",
        "/iam/roles",
        One(of::<Role>),
        "Creates a Role of the Installation. It may permit whatever anybody is asked for.",
    )
    .taking(64 * KIB, of::<CreateRole>)
    .status(201)
    .also(&[409]),
    op(
        "getInstallationRole",
        "GET",
        "/iam/roles/{role}",
        One(of::<Role>),
        "A Role of the Installation.",
    ),
    op(
        "deleteInstallationRole",
        "DELETE",
        "/iam/roles/{role}",
        Nothing,
        "Deletes a Role that no access binding names.",
    )
    .status(204)
    .also(&[409]),
    op(
        "listInstallationAccessBindings",
        "GET",
        "/iam/access-bindings",
        List(of::<AccessBinding>),
        "The access bindings of the Installation, which are confined to no Namespace.",
    ),
    op(
        "createInstallationAccessBinding",
        "POST",
        "/iam/access-bindings",
        One(of::<AccessBinding>),
        "Grants a person a Role of the Installation, everywhere.",
    )
    .taking(64 * KIB, of::<CreateAccessBinding>)
    .status(201)
    .also(&[404, 409]),
    op(
        "getInstallationAccessBinding",
        "GET",
        "/iam/access-bindings/{binding}",
        One(of::<AccessBinding>),
        "An access binding of the Installation.",
    ),
    op(
        "deleteInstallationAccessBinding",
        "DELETE",
        "/iam/access-bindings/{binding}",
        Nothing,
        "Deletes an access binding of the Installation. Nobody deletes the last one by which they administer it.",
    )
    .status(204)
    .also(&[409]),
    op(
        "createAgentToken",
        "POST",
        agent!("/tokens"),
        One(of::<AgentTokenReply>),
        "Makes a token by which the Agent's service principal is recognised, which is shown this once.",
    )
    .taking(64 * KIB, of::<CreateAgentToken>)
    .status(201)
    .also(&[409]),
    op(
        "listServicePrincipals",
        "GET",
        below!("/iam/service-principals"),
        List(of::<ServicePrincipalView>),
        "The service principals that a Namespace's policy can name.",
    ),
];

/// An object without fields.
#[derive(serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

/// The operation of a route.
pub(crate) fn find(method: &Method, template: &str) -> Option<&'static Operation> {
    // A HEAD is the GET without its body.
    let method = if *method == Method::HEAD {
        "GET"
    } else {
        method.as_str()
    };
    OPERATIONS
        .iter()
        .find(|operation| operation.method == method && operation.path == template)
}
