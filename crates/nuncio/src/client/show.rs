//! `nuncio config show`: every setting and where it comes from. Changes nothing.

use serde_json::{Map, json};

use super::options::{ClientOptions, Layer};
use super::printer::Printer;
use super::settings::Settings;
use super::text::Text;
use crate::outcome::Outcome;
use crate::surroundings::Surroundings;

/// Prints the settings in force; secrets are left out.
pub(crate) fn config_show(options: &ClientOptions, around: &Surroundings) -> Outcome {
    let settings = Settings::gather(options, Layer::new(), around)?;
    let printer = Printer::new(
        settings.output()?,
        options.stream,
        settings.flag("verbose")?,
    );
    if printer.is_json() {
        let shown = settings.shown();
        let entries: Map<_, _> = shown
            .map(|(name, value, source)| {
                (
                    name.to_owned(),
                    json!({"value": value, "source": source.to_string()}),
                )
            })
            .collect();
        return printer.json(&json!({ "settings": entries }));
    }
    let mut text = Text::new(false);
    for (name, value, source) in settings.shown() {
        let value = if value.is_empty() {
            "(not set)".to_owned()
        } else {
            value.replace('\n', ", ")
        };
        text.field(name, &format!("{value} [{source}]"));
    }
    printer.text(text)
}
