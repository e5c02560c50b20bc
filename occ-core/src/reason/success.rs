//! How work ends well (spec/engine 8.2, spec/contracts 6.4).

use super::vocabulary;

vocabulary! {
    /// The result of completed work. `REVISION_SUPERSEDED` and `REVISION_STOPPED` complete the work, yet the deployment
    /// that it was for reads `failed`, because its version was never selected.
    Success {
        RevisionActivated = "REVISION_ACTIVATED", "The version is selected and active.";
        RevisionAlreadyActive = "REVISION_ALREADY_ACTIVE", "The version was selected already and is active.";
        RevisionSuperseded = "REVISION_SUPERSEDED", "A newer version took this one's place before its deployment was finished.";
        RevisionStopped = "REVISION_STOPPED", "The Agent was stopped before this version's deployment was finished.";
        RevisionMaintenanceSuperseded = "REVISION_MAINTENANCE_SUPERSEDED", "Maintenance ended: the version is no longer the selected one, or the Agent is stopped.";
        AgentStopped = "AGENT_STOPPED", "The Agent is stopped.";
        AgentAlreadyStopped = "AGENT_ALREADY_STOPPED", "The Agent was stopped already.";
        StopSuperseded = "STOP_SUPERSEDED", "A later deployment took this stop's place.";
        AgentDeleted = "AGENT_DELETED", "The Agent is deleted.";
        CredentialsWithdrawn = "CREDENTIALS_WITHDRAWN", "The version can use the credential source no more.";
        NamespaceReconciled = "NAMESPACE_RECONCILED", "The Namespace is as it was asked to be.";
        SupersededTarget = "SUPERSEDED_TARGET", "What was asked for was reached or changed meanwhile.";
    }
}
