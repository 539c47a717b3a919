//! Gates in the simulated world: they let everybody pass whom nobody told them not to.
//!
//! They are asked as those of real clusters are: one after the other, again and again until each lets
//! the node pass, and for no longer than it may be asked.

use super::{Failed, Simulated, stopped};
use ::driver::{Context, Error};
use model::gate::Gate;
use model::name::Name;
use model::task::{Action, Task};
use std::time::Duration;
use tokio::time::sleep;

/// How long to wait before a gate is asked again.
const AGAIN: Duration = Duration::from_secs(10);

impl Simulated {
    /// Asks all gates of a node that is to serve again.
    pub(super) async fn pass(&self, cx: &Context, task: &Task) -> Result<(), Failed> {
        if let Action::Readmit { gates } = &task.action {
            for gate in gates {
                self.pass_one(cx, &task.machine.name, gate).await?;
            }
        }
        Ok(())
    }

    async fn pass_one(&self, cx: &Context, node: &Name, gate: &Gate) -> Result<(), Failed> {
        let (name, began) = (&gate.name, self.world.now());
        while self.ask(cx, || self.world.is_shut(name)).await? {
            if self.world.now().since(began) + AGAIN >= gate.patience {
                let seconds = gate.patience.as_secs();
                return Err(Failed::Never(Error {
                    attempted: format!(
                        "gate {name} did not let {node} pass for {seconds} s: it is shut (KUBE-031)"
                    ),
                    hint:
                        "mend what the gate complains of and ask again with `slipway task retry`, \
                           or change the gate in the manifest"
                            .to_owned(),
                }));
            }
            tokio::select! {
                biased;
                () = cx.cancelled() => return Err(stopped()),
                () = sleep(AGAIN) => {}
            }
        }
        cx.log(&format!("simulated: gate {name} lets {node} pass"));
        Ok(())
    }
}
