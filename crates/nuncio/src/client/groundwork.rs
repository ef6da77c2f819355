//! What a command needs that talks to no agent of a card: settings, the way out, the output.

use nuncio_egress::Egress;

use super::debug::Debug;
use super::options::{ClientOptions, Layer};
use super::printer::Printer;
use super::session::{check, egress, secrets};
use super::settings::Settings;
use crate::outcome::Outcome;
use crate::surroundings::Surroundings;

/// What a command works with that has yet to find out whom it talks to.
#[derive(Debug)]
pub(crate) struct Groundwork {
    pub(crate) settings: Settings,
    pub(crate) egress: Egress,
    pub(crate) printer: Printer,
}

impl Groundwork {
    /// Reads the settings and makes ready to go out.
    ///
    /// # Errors
    /// Settings that make no sense.
    pub(crate) fn new(
        options: &ClientOptions,
        more: Layer,
        around: &Surroundings,
    ) -> Outcome<Self> {
        let settings = Settings::gather(options, more, around)?;
        let printer = Printer::new(settings.output()?, false, settings.flag("verbose")?);
        check(&settings)?;
        Debug::new(settings.flag("debug")?, secrets(&settings)?).listen();
        Ok(Self {
            egress: egress(&settings)?,
            settings,
            printer,
        })
    }
}
