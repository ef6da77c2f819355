//! Schemes, and what is required of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Findings, list};

impl Findings {
    pub(super) fn security(&mut self, card: &Value) {
        let schemes = card["securitySchemes"].as_object();
        let declared: BTreeSet<&str> = schemes
            .into_iter()
            .flat_map(|schemes| schemes.keys().map(String::as_str))
            .collect();
        self.requirements("", card, &declared);
        for (index, skill) in list(card, "skills").iter().enumerate() {
            self.requirements(&format!("skills[{index}]."), skill, &declared);
        }
        for (name, scheme) in schemes.into_iter().flatten() {
            self.scheme(&format!("securitySchemes.{name}"), scheme);
        }
        let extended = card["capabilities"]["extendedAgentCard"] == true;
        if extended && declared.is_empty() {
            self.warning(
                "OP-XCARD-02",
                "capabilities.extendedAgentCard",
                "is for authenticated callers, but the card declares no scheme",
            );
        }
    }

    fn requirements(&mut self, path: &str, holder: &Value, declared: &BTreeSet<&str>) {
        for (index, requirement) in list(holder, "securityRequirements").iter().enumerate() {
            let names = requirement["schemes"].as_object().into_iter();
            for name in names.flat_map(|schemes| schemes.keys()) {
                if !declared.contains(name.as_str()) {
                    let path = format!("{path}securityRequirements[{index}].schemes.{name}");
                    self.error("AUTH-02", &path, "is not among the securitySchemes");
                }
            }
        }
    }

    fn scheme(&mut self, path: &str, scheme: &Value) {
        let known = [
            "apiKeySecurityScheme",
            "httpAuthSecurityScheme",
            "oauth2SecurityScheme",
            "openIdConnectSecurityScheme",
            "mtlsSecurityScheme",
        ];
        let kinds = known
            .iter()
            .filter(|kind| !scheme[**kind].is_null())
            .count();
        if kinds == 0 {
            self.warning(
                "CARD-09",
                path,
                "is of no kind that protocol 1.0 knows: clients skip it",
            );
        }
        let location = &scheme["apiKeySecurityScheme"]["location"];
        if location.is_string() && !["header", "query", "cookie"].iter().any(|l| location == l) {
            let message = format!("is header, query or cookie, not {location}");
            self.error(
                "AUTH-06",
                &format!("{path}.apiKeySecurityScheme.location"),
                &message,
            );
        }
        for flow in ["implicit", "password"] {
            if !scheme["oauth2SecurityScheme"]["flows"][flow].is_null() {
                let path = format!("{path}.oauth2SecurityScheme.flows.{flow}");
                self.warning("AUTH-06", &path, "is a deprecated OAuth flow");
            }
        }
    }
}
