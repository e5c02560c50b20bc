//! What can be wrong with a native document: a pointer and one of these texts. None of them can hold a value of the document.

/// The texts of a [`DocumentProblem`](occ_core::driver::DocumentProblem).
pub mod message {
    macro_rules! messages {
        ($($name:ident = $text:literal;)*) => {$(
            #[doc = concat!("`", $text, "`")]
            pub const $name: &str = $text;
        )*};
    }

    // Shapes.
    messages! {
        OBJECT = "The setting must be an object.";
        LIST = "The setting must be a list.";
        TEXT = "The setting must be text.";
        TEXT_OR_OBJECT = "The setting must be text or an object.";
        BOOLEAN = "The setting must be true or false.";
        PORT = "The setting must be a port number from 1 to 65535.";
        INCLUDE = "The document must be whole: it is saved with the version, so that nothing can be included from a file.";
    }

    // Which Harness runs the Agent (spec/contracts 10.3, spec/drivers 0.5).
    messages! {
        // The seed's own text.
        RUNTIME_REQUIRED = "The configured Agent model requires an explicit supported Harness runtime.";
        RUNTIME_CONFLICT = "The configured Agent model has contradictory Harness runtimes: every agentRuntime.id that applies must be the same.";
        RUNTIME_UNKNOWN = "The Harness runtime is not supported: agentRuntime.id must be openclaw or codex.";
        CODEX_MODEL = "The codex Harness runtime needs a codex model, or an openai model with the codex plugin enabled and its appServer.transport set to websocket.";
        CODEX_RUNTIME = "A codex model needs the codex Harness runtime.";
        AGENTS_LIST = "An Agent has a gateway of its own: describe it in agents.defaults and agents.entries instead of agents.list.";
        ENTRY_MODEL = "Every agent of the gateway must have the same primary model.";
        ENTRY_MAIN = "Of several agents, one must be called main.";
        MODEL = "A model must be written as provider/model.";
        FALLBACK_PROVIDER = "A fallback model must have the provider of the primary model.";
        FALLBACK_RUNTIME = "A fallback model must have the Harness runtime of the primary model.";
        SELECTABLE_PROVIDER = "A selectable model must have the provider of the primary model.";
        SELECTABLE_RUNTIME = "A selectable model needs an explicit Harness runtime: the one of the primary model.";
        CATALOG = "The provider's model list may hold models that the Agent uses or may select, and no others.";
    }

    // What this Harness can run.
    messages! {
        OTHER_HARNESS = "The document selects another Harness than openclaw.";
        EMBEDDED = "The openclaw Harness runs in embedded execution mode only.";
        AUTH = "The openclaw Harness takes the harnessAuth methods api_key and runtime.";
        MODEL_REQUIRED = "The Agent needs an explicit model: set agents.defaults.model to provider/model.";
        PROVIDER = "The model's provider must be openai, anthropic, or described in models.providers.";
        GATEWAY_MODE = "The gateway must be local: omit gateway.mode or set it to local.";
        SHELL_ENVIRONMENT = "The gateway must not take environment variables from a login shell: omit env.shellEnv or disable it.";
    }

    // Model providers.
    messages! {
        BASE_URL = "The address must be an absolute http or https URL without a user name and password.";
        BASE_URL_REQUIRED = "A provider other than openai and anthropic needs a baseUrl.";
        API_UNKNOWN = "The setting must be one of the model APIs that OpenClaw knows.";
        API_PROVIDER = "This provider's models need another API: openai-responses or openai-completions for openai, anthropic-messages for anthropic, one of these for other providers.";
        PROVIDER_AUTH = "The provider must authenticate with the API key that harnessAuth supplies: omit auth or set it to api-key.";
        API_KEY = "The API key must be a reference to an environment variable: \"${NAME}\", or {\"source\": \"env\", \"provider\": \"default\", \"id\": \"NAME\"}.";
        API_KEY_REQUIRED = "A provider other than openai and anthropic needs an apiKey that names the environment variable which receives the credential, such as \"${NAME}\".";
        API_KEY_NAME = "The environment variable of an API key must not be one that the platform or the runtime owns.";
        API_KEY_BOUND = "The environment variable receives the credential of harnessAuth, so that no Secret can be bound to it.";
    }

    // Literal credentials.
    messages! {
        AUTH_SECTION = "Model credentials come from the Agent's harnessAuth: the document must have no auth section.";
        MODEL_ENVIRONMENT = "Model credentials come from the Agent's harnessAuth: the document must not set this environment variable.";
        CREDENTIAL_HEADER = "Model credentials come from the Agent's harnessAuth: the document must not set this header.";
        REQUEST_AUTH = "Model credentials come from the Agent's harnessAuth: omit request.auth.";
        LITERAL = "A credential must be a reference, such as \"${NAME}\", to a Secret that the Configuration binds.";
    }
}
