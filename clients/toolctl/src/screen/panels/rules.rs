//! Permission rules and grants, in the order in which they are listed: grants first. Before them, rules that the person's
//! last answers suggest.

use toold_proto::effect::in_words;
use toold_proto::permission::{Action, GrantInfo, RuleInfo, SuggestedRule};

use crate::clock::date_and_time_in;
use crate::screen::daemon_data::DaemonData;
use crate::screen::details::{Details, field};
use crate::screen::panel::PanelRow;
use crate::views::permissions::{self, of_action};
use crate::views::{Column, FILL, Tone, ViewCell, column, whole_column};

pub(in crate::screen) const COLUMNS: &[Column] = &[
    column("ACTION", 6, 6, 1),
    column("CATEGORY", 8, 10, 2),
    // The whole pattern before anything else: it is what the rule says.
    whole_column("PATTERN", 12, 120),
    column("USED", 4, 9, 4),
    column("LAST USE", 16, 16, 5),
    column("FROM", 10, FILL, 3),
];

/// The grant with this key; a rule has none, because only its file can remove it.
pub(in crate::screen) fn find_grant<'a>(data: &'a DaemonData, wanted: &str) -> Option<&'a GrantInfo> {
    data.permissions.as_ref()?.grants.iter().find(|grant| grant_key(grant) == wanted)
}

/// The suggested rule with this key.
pub(in crate::screen) fn find_suggested<'a>(data: &'a DaemonData, wanted: &str) -> Option<&'a SuggestedRule> {
    suggested(data).find(|rule| suggested_key(rule) == wanted)
}

/// The suggested rules that no grant has accepted yet.
fn suggested(data: &DaemonData) -> impl Iterator<Item = &SuggestedRule> {
    let grants = data.permissions.as_ref().map(|list| list.grants.as_slice()).unwrap_or_default();
    let is_granted = |rule: &SuggestedRule| {
        let mut allowing = grants.iter().filter(|grant| grant.action == Action::Allow);
        allowing.any(|grant| (grant.category, &grant.pattern) == (rule.category, &rule.pattern))
    };
    data.suggested.iter().filter(move |rule| !is_granted(rule))
}

fn suggested_key(rule: &SuggestedRule) -> String {
    format!("suggested {} {}", rule.category, rule.pattern)
}

/// Why a rule is suggested.
pub(in crate::screen) fn reason(rule: &SuggestedRule) -> String {
    format!("would have given {} of your answers of the last 7 days", rule.count)
}

fn grant_key(grant: &GrantInfo) -> String {
    format!("grant {}", grant.id)
}

/// Rules have no ids, and two equal ones of the same source do not differ for anybody.
pub(in crate::screen) fn rule_key(rule: &RuleInfo) -> String {
    let tools = rule.tools.as_deref().unwrap_or_default().join(",");
    let cwd = rule.cwd.as_deref().unwrap_or_default();
    let agent = rule.agent.as_deref().unwrap_or_default();
    let place = format!("{}\n{}\n{cwd}\n{tools}\n{agent}", rule.source, rule.shown_pattern());
    format!("rule {} {} {place}", rule.category, rule.action.as_str())
}

pub(in crate::screen) fn rows(data: &DaemonData) -> Vec<PanelRow> {
    let Some(list) = &data.permissions else { return Vec::new() };
    let suggested = suggested(data).map(|rule| PanelRow {
        key: suggested_key(rule),
        cells: vec![
            ViewCell::new(Tone::Warn, "allow?").number(-1.0),
            ViewCell::plain(rule.category.as_str()),
            ViewCell::name(&rule.pattern),
            ViewCell::plain(rule.count.to_string()).number(rule.count as f64),
            ViewCell::plain(""),
            ViewCell::plain(format!("suggested: {}", reason(rule))),
        ],
    });
    let grants = list.grants.iter().map(|grant| {
        let used = grant.used_at.as_deref().map(|at| date_and_time_in(at, data.zone)).unwrap_or_default();
        PanelRow {
            key: grant_key(grant),
            cells: vec![
                permissions::verdict(of_action(grant.action)),
                ViewCell::plain(grant.category.as_str()),
                ViewCell::name(&grant.pattern),
                permissions::uses(grant),
                ViewCell::plain(used.get(..16).unwrap_or(&used)),
                ViewCell::plain(format!(
                    "grant: {}, by {}",
                    permissions::holds(grant, data.zone),
                    permissions::origin(grant)
                )),
            ],
        }
    });
    let rules = list.rules.iter().map(|rule| PanelRow {
        key: rule_key(rule),
        cells: vec![
            permissions::verdict(rule.action),
            ViewCell::plain(rule.category.as_str()),
            ViewCell::name(rule.shown_pattern()),
            ViewCell::plain("").number(-1.0),
            ViewCell::plain(""),
            ViewCell::path(Tone::Plain, &rule.source),
        ],
    });
    suggested.chain(grants).chain(rules).collect()
}

pub(in crate::screen) fn details(data: &DaemonData, wanted: &str) -> Option<Details> {
    if let Some(rule) = find_suggested(data, wanted) {
        let mut lines = vec![
            field("suggested", &reason(rule)),
            field("category", rule.category.as_str()),
            field("pattern", &rule.pattern),
        ];
        lines.extend((!rule.effects.is_empty()).then(|| field("effects", &in_words(&rule.effects))));
        return Some(Details { title: "suggested rule".to_owned(), lines, query: None });
    }
    let list = data.permissions.as_ref()?;
    if let Some(grant) = find_grant(data, wanted) {
        let mut lines = vec![
            field("action", of_action(grant.action).as_str()),
            field("category", grant.category.as_str()),
            field("pattern", &grant.pattern),
            field("for", &permissions::holds(grant, data.zone)),
            field("granted", &date_and_time_in(&grant.granted_at, data.zone)),
            field("by", &permissions::origin(grant)),
            field("used", &permissions::uses(grant).text),
        ];
        lines.extend(grant.used_at.as_deref().map(|at| field("last use", &date_and_time_in(at, data.zone))));
        lines.extend(grant.tools.as_ref().map(|tools| field("tools", &tools.join(" "))));
        lines.extend((!grant.chain.is_empty()).then(|| field("through", &grant.chain.join(", "))));
        if let Some(ask) = &grant.asked {
            let agent = ask.agent.as_deref().map(|agent| format!("{agent}: ")).unwrap_or_default();
            lines.push(field("answered", &format!("{agent}{} in {}", ask.tool, ask.cwd)));
        }
        return Some(Details { title: format!("grant {}", grant.id), lines, query: None });
    }
    let rule = list.rules.iter().find(|rule| rule_key(rule) == wanted)?;
    let mut lines = vec![
        field("action", rule.action.as_str()),
        field("category", rule.category.as_str()),
        field("pattern", &rule.shown_pattern()),
        field("from", &rule.source),
    ];
    lines.extend(rule.agent.as_deref().map(|agent| field("agent", agent)));
    lines.extend(rule.cwd.as_deref().map(|cwd| field("folder", cwd)));
    lines.extend(rule.tools.as_ref().map(|tools| field("tools", &tools.join(" "))));
    Some(Details { title: "rule".to_owned(), lines, query: None })
}
