//! Draws progress: a tree with bars on a terminal, plain lines elsewhere.

use crate::out::Out;
use crate::progress::{Lines, Scene, Tally, Tree, tree};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::time::Duration;

/// Lines that stay free: the overall bar, and the prompt that was there before.
const ROWS_KEPT: usize = 3;

/// How often the clock beside the bar moves.
const TICK: Duration = Duration::from_millis(250);

/// The widest overall bar, and the narrowest that still says something.
const BAR_WIDTHS: (usize, usize) = (30, 4);

/// Columns for the clock beside the bar, days included.
const CLOCK: usize = 12;

/// One line below it; cut where the terminal ends.
const ROW: &str = "  {wide_msg}";

/// The overall line where there is no room for a bar; cut likewise.
const NARROW: &str = "{wide_msg}";

/// Something that shows scenes as they come.
pub(crate) enum Show {
    /// Lines, on change.
    Plain(Lines),
    /// A tree that is drawn over itself.
    Tree(Box<Drawing>),
    /// Nothing; a program reads the answer at the end.
    Quiet,
}

/// The bars of a tree.
pub(crate) struct Drawing {
    all: MultiProgress,
    overall: ProgressBar,
    template: String,
    ticking: bool,
    rows: Vec<ProgressBar>,
    tally: Tally,
}

impl Show {
    pub(crate) fn new(out: &Out, quiet: bool) -> Self {
        if quiet {
            Self::Quiet
        } else if out.live() {
            Self::Tree(Box::new(Drawing::new()))
        } else {
            Self::Plain(Lines::default())
        }
    }

    /// Shows a scene.
    pub(crate) fn scene(&mut self, scene: &Scene, out: &mut Out) {
        match self {
            Self::Plain(lines) => {
                for line in lines.changes(scene) {
                    out.say(&line);
                }
            }
            Self::Tree(drawing) => drawing.draw(scene),
            Self::Quiet => {}
        }
    }

    /// Says something that is not part of a scene.
    pub(crate) fn remark(&self, line: &str, out: &mut Out) {
        match self {
            Self::Plain(_) | Self::Quiet => out.say(line),
            // A remark that cannot be drawn must not stop the work it is about.
            Self::Tree(drawing) => drop(drawing.all.println(line)),
        }
    }

    /// Takes the drawing away, so that what follows stands on its own.
    pub(crate) fn finish(self) {
        match self {
            Self::Plain(_) | Self::Quiet => {}
            Self::Tree(drawing) => drop(drawing.all.clear()),
        }
    }
}

impl Drawing {
    fn new() -> Self {
        let all = MultiProgress::new();
        let overall = all.add(ProgressBar::new(0).with_style(style(NARROW)));
        Self {
            all,
            overall,
            template: NARROW.to_owned(),
            ticking: false,
            rows: Vec::new(),
            tally: Tally::default(),
        }
    }

    fn draw(&mut self, scene: &Scene) {
        let (height, width) = console::Term::stderr().size_checked().unwrap_or((24, 80));
        let Tree { headline, rows } =
            tree(scene, usize::from(height).saturating_sub(ROWS_KEPT).max(1));
        let (done, total) = self.tally.count(scene);
        self.overall.set_length(total);
        self.overall.set_position(done);
        let line = format!("{done}/{total} machines  {headline}");
        let template = overall(&line, width.into());
        if self.template != template {
            self.overall.set_style(style(&template));
            self.template = template;
        }
        self.overall.set_message(line);
        if !std::mem::replace(&mut self.ticking, true) {
            // Not before the first scene: until then there is nothing to draw.
            self.overall.enable_steady_tick(TICK);
        }
        while self.rows.len() > rows.len() {
            if let Some(row) = self.rows.pop() {
                row.finish_and_clear();
                self.all.remove(&row);
            }
        }
        while self.rows.len() < rows.len() {
            self.rows
                .push(self.all.add(ProgressBar::new(0).with_style(style(ROW))));
        }
        for (row, text) in self.rows.iter().zip(rows) {
            row.set_message(text);
        }
    }
}

/// The template of the overall line on a terminal so wide: a line that wraps could not be
/// drawn over, so the bar shrinks, and goes when there is no room.
fn overall(line: &str, width: usize) -> String {
    let (widest, narrowest) = BAR_WIDTHS;
    let beside = " ".len() + console::measure_text_width(line) + "  ".len() + CLOCK;
    match width.saturating_sub(beside).min(widest) {
        bar if bar >= narrowest => format!("{{bar:{bar}}} {{msg}}  {{elapsed_precise}}"),
        _ => NARROW.to_owned(),
    }
}

/// The style of a template; a test reads all of them.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▓░")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "3/12 machines  1 of 4 clusters ready";

    #[test]
    fn the_bar_shrinks_with_the_terminal_and_goes_at_last() {
        let templates: Vec<_> = [200, 80, 60, 55, 54, 20, 0]
            .into_iter()
            .map(|width| overall(LINE, width))
            .collect();
        assert_eq!(
            templates,
            [
                "{bar:30} {msg}  {elapsed_precise}",
                "{bar:29} {msg}  {elapsed_precise}",
                "{bar:9} {msg}  {elapsed_precise}",
                "{bar:4} {msg}  {elapsed_precise}",
                NARROW,
                NARROW,
                NARROW,
            ]
        );
    }

    #[test]
    fn the_templates_can_be_read() {
        for template in [&overall(LINE, 80), NARROW, ROW] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
