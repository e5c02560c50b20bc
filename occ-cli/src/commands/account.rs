//! `occ account`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use occ_core::{
    control::PersonView,
    resource::{Email, Name, PrincipalId},
    secret_value::SecretValue,
    time::Timestamp,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, key::NewFile, maybe};
use crate::{
    client::Client,
    connect::{KeyHome, missing},
    exit::{Done, Failure},
    input,
    output::Fields,
};

/// Accounts: people who sign in with an email address and a password.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    home: KeyHome,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make an account, with a one-time code or a first password.
    #[command(
        after_help = "Without --password-file a one-time code is made and shown this once: the person signs in with it and sets a password.
Nothing is granted to a new person: bind a Role to the principal that is printed.

Examples:
  occ account create ada@example.com --name Ada --principal \"$(cat /srv/occ/administrator)\" --password-file -
  occ account create grace@example.com --name Grace --out grace.code"
    )]
    Create(Create),
    /// List the accounts.
    List,
    /// Make a new one-time code, for whoever forgot the password.
    Code {
        /// The account: its email address or the principal's id.
        account: String,
        /// A new file that gets the code, readable by you alone [default: it is printed].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Link an account to who an identity provider says that its person is.
    Link {
        /// The account: its email address or the principal's id.
        account: String,
        /// The provider, exactly as it names itself.
        #[arg(long, value_name = "URL")]
        issuer: String,
        /// The person, exactly as the provider names them.
        #[arg(long)]
        subject: String,
    },
    /// Take every identity from an account, and end its sessions.
    Unlink {
        /// The account: its email address or the principal's id.
        account: String,
    },
    /// Let an account not be used any more. Its sessions end, and its person's service keys are refused.
    Disable {
        /// The account: its email address or the principal's id.
        account: String,
    },
    /// Let a disabled account be used again.
    Enable {
        /// The account: its email address or the principal's id.
        account: String,
    },
    /// End every session of an account.
    SignOut {
        /// The account: its email address or the principal's id.
        account: String,
    },
}

#[derive(Debug, Args)]
struct Create {
    /// The email address that the person signs in with.
    email: Email,
    /// What the person is called.
    #[arg(long)]
    name: Name,
    /// A person who exists and has no account, such as the first administrator [default: a new person].
    #[arg(long, value_name = "ID")]
    principal: Option<PrincipalId>,
    /// The file that holds the first password, or - for standard input; a terminal asks for it [default: a one-time code is made].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A new file that gets the one-time code, readable by you alone [default: it is printed].
    #[arg(long, value_name = "FILE", conflicts_with = "password_file")]
    out: Option<PathBuf>,
}

/// A one-time code; shown this once.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Code {
    value: String,
    expires_at: Timestamp,
}

#[derive(Deserialize)]
struct Created {
    account: PersonView,
    code: Option<Code>,
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    let client = noun.home.client(cx.connection)?;
    match noun.verb {
        Verb::Create(create) => self::create(&client, create, &cx).await,
        Verb::List => {
            let accounts: Vec<PersonView> = client.get("/accounts").await?;
            let columns = ["EMAIL", "NAME", "PRINCIPAL", "STATE"];
            cx.output.list(&accounts, &columns, |account| {
                vec![
                    account.email.to_string(),
                    account.name.clone(),
                    account.principal_id.to_string(),
                    state(account).to_owned(),
                ]
            })
        }
        Verb::Code { account, out } => {
            let person = find(&client, &account).await?;
            let out = out.as_deref().map(NewFile::create).transpose()?;
            let made = client.act::<Code>(&format!("/accounts/{person}/code")).await;
            let (code, kept) = kept(made.map(Some), out)?;
            show(
                &cx,
                &json!({ "principalId": person }),
                vec![("principal", person.to_string())],
                code,
                kept,
            )
        }
        Verb::Disable { account } => update(&client, &account, true, &cx).await,
        Verb::Enable { account } => update(&client, &account, false, &cx).await,
        Verb::Link {
            account,
            issuer,
            subject,
        } => {
            let person = find(&client, &account).await?;
            let body = json!({ "issuer": issuer, "subject": subject });
            client
                .post::<Value>(&format!("/accounts/{person}/identities"), &body)
                .await?;
            cx.output.done("linked")
        }
        Verb::Unlink { account } => {
            let person = find(&client, &account).await?;
            client.delete(&format!("/accounts/{person}/identities")).await?;
            cx.output.done("unlinked")
        }
        Verb::SignOut { account } => {
            let person = find(&client, &account).await?;
            client.delete(&format!("/accounts/{person}/sessions")).await?;
            cx.output.done("signed out")
        }
    }
}

async fn create(client: &Client, create: Create, cx: &Context<'_>) -> Done {
    let password = match &create.password_file {
        Some(file) => Some(input::secret(Some(file.as_path()))?),
        None => None,
    };
    let mut body = json!({ "email": create.email, "name": create.name });
    if let Some(principal) = &create.principal {
        body["principalId"] = json!(principal);
    }
    if let Some(password) = &password {
        body["password"] = json!(password.expose_str());
    }
    let out = create.out.as_deref().map(NewFile::create).transpose()?;
    let made = client.post::<Created>("/accounts", &body).await;
    let (account, code) = match made {
        Ok(created) => (Some(created.account), Ok(created.code)),
        Err(error) => (None, Err(error)),
    };
    let (code, kept) = kept(code, out)?;
    let account = account.ok_or_else(|| Failure::refused("the API gave no account"))?;
    show(cx, &json!({ "account": account }), fields(&account), code, kept)
}

/// The code, and where it was written; a file that gets nothing is removed again.
fn kept<E>(made: Result<Option<Code>, E>, out: Option<NewFile<'_>>) -> Done<(Option<Code>, Option<String>)>
where
    Failure: From<E>,
{
    match (made, out) {
        (Ok(Some(code)), Some(file)) => {
            let value = SecretValue::from(code.value);
            let path = file.keep(&value)?;
            let code = Code {
                value: String::new(),
                expires_at: code.expires_at,
            };
            Ok((Some(code), Some(path)))
        }
        (Ok(code), out) => {
            out.into_iter().for_each(NewFile::discard);
            Ok((code, None))
        }
        (Err(error), out) => {
            out.into_iter().for_each(NewFile::discard);
            Err(error.into())
        }
    }
}

fn show(cx: &Context<'_>, item: &Value, fields: Fields, code: Option<Code>, kept: Option<String>) -> Done {
    let (mut item, mut fields) = (item.clone(), fields);
    if let Some(code) = code {
        item["codeExpiresAt"] = json!(code.expires_at);
        if let Some(path) = kept {
            item["codeFile"] = json!(path);
            fields.push(("code file", path));
        } else {
            item["code"] = json!(code.value);
            fields.push(("code", code.value));
        }
        fields.push(("code ends", code.expires_at.to_string()));
    }
    cx.output.one(&item, |_| fields.clone())
}

async fn update(client: &Client, account: &str, disabled: bool, cx: &Context<'_>) -> Done {
    let person = find(client, account).await?;
    let updated: PersonView = client
        .patch(&format!("/accounts/{person}"), &json!({ "disabled": disabled }))
        .await?;
    cx.output.one(&updated, fields)
}

fn state(account: &PersonView) -> &'static str {
    match (account.disabled, account.has_password, account.code_expires_at) {
        (true, ..) => "disabled",
        (false, true, _) => "active",
        (false, false, Some(_)) => "invited",
        (false, false, None) => "no password",
    }
}

fn fields(account: &PersonView) -> Fields {
    vec![
        ("email", account.email.to_string()),
        ("name", account.name.clone()),
        ("principal", account.principal_id.to_string()),
        ("state", state(account).to_owned()),
        ("code until", maybe(account.code_expires_at)),
        ("created", account.created_at.to_string()),
    ]
}

/// The principal of the account with this email address, or this id.
async fn find(client: &Client, text: &str) -> Done<PrincipalId> {
    if let Ok(email) = text.parse::<Email>() {
        let accounts: Vec<PersonView> = client.get("/accounts").await?;
        let found = accounts.into_iter().find(|account| account.email == email);
        return found
            .map(|account| account.principal_id)
            .ok_or_else(|| missing("account", text));
    }
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let id = text.parse().ok().filter(|_| plain);
    id.ok_or_else(|| Failure::usage("an account is named by its email address or by the id of its principal"))
}
