//! The parent process: reads programs, has them compiled, and collects the answers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pjrt_stablehlo::Module;
use pjrt_stablehlo::passes::decompositions;

use super::child::Message;
use super::options::Options;
use super::recorded::recorded;
use super::report::{OpRow, Outcome, ProgramRow, Report, Tier};
use super::source::Source;
use super::sources::sources;
use super::trials::{Key, Trial, Trials, uses};
use crate::process::child::{Prints, Received, Worker};
use crate::process::{Scratch, output};
use crate::run::Job;
use crate::run::features::{Feature, differences};

/// A program with its operations and the plugin's answers.
struct Program {
    tier: String,
    required: bool,
    row: ProgramRow,
    module: Option<Module>,
    uses: BTreeMap<Key, usize>,
}

/// Lists the needs of programs. `program` is the path of this program, which must have the hidden subcommand `needs-child`.
///
/// # Errors
///
/// Returns an error if an argument names no program, if a child cannot be started, or if the plugin cannot be used.
pub fn needs(options: &Options, program: &Path) -> Result<Report, String> {
    let sources = sources(options)?;
    let mut programs: Vec<Program> = sources.iter().map(examine).collect();
    let mut answers = HashMap::new();
    if let Some(plugin) = &options.plugin {
        let compiler = Compiler { plugin, options: &options.options, program, timeout: options.timeout };
        answers = ask(&compiler, &sources, &mut programs)?;
    }
    Ok(Report { plugin: options.plugin.clone(), tiers: tiers(&programs, &answers) })
}

/// Returns those of the recorded programs, given by their tiers and names, that a plugin compiles. `program` is the path of this
/// program.
///
/// # Errors
///
/// Returns an error if a child cannot be started, or if the plugin cannot be used.
pub(crate) fn accepted<'a>(
    names: &[(&'a str, &'a str)],
    plugin: &Path,
    options: &[String],
    program: &Path,
    timeout: Duration,
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let recorded = recorded(&[], &[]);
    let found = names.iter().filter_map(|name| {
        let source = recorded.iter().find(|source| (source.tier.as_str(), source.name.as_str()) == *name)?;
        Some((*name, source.job.as_ref().ok()?))
    });
    let (names, jobs): (Vec<_>, Vec<&Job>) = found.unzip();
    let outcomes = Compiler { plugin, options, program, timeout }.compile(&jobs, "recorded programs")?;
    let compiled = names.into_iter().zip(outcomes).filter(|(_, outcome)| *outcome == Outcome::Accepted);
    Ok(compiled.map(|(name, _)| name).collect())
}

/// Reads a program and lists its operations.
fn examine(source: &Source) -> Program {
    let module = source.job.as_ref().map_err(Clone::clone).and_then(Job::module);
    let row = ProgramRow {
        name: source.name.clone(),
        unreadable: module.as_ref().err().cloned(),
        outcome: None,
        refused_ops: Vec::new(),
    };
    let uses = module.as_ref().map(uses).unwrap_or_default();
    Program { tier: source.tier.clone(), required: source.required, row, module: module.ok(), uses }
}

/// Has the plugin compile the programs, and the operations of those that it refuses. Returns its answers for operations.
fn ask(
    compiler: &Compiler<'_>,
    sources: &[Source],
    programs: &mut [Program],
) -> Result<HashMap<Key, Outcome>, String> {
    let readable: Vec<(usize, &Job)> = sources
        .iter()
        .enumerate()
        .filter_map(|(index, source)| Some((index, source.job.as_ref().ok()?)))
        .collect();
    let jobs: Vec<&Job> = readable.iter().map(|(_, job)| *job).collect();
    let outcomes = compiler.compile(&jobs, "programs")?;
    for ((index, _), outcome) in readable.iter().zip(outcomes) {
        programs[*index].row.outcome = Some(outcome);
    }
    // The operations of accepted programs are accepted, and come first.
    let mut trials = Trials::default();
    let is_accepted = |program: &&Program| program.row.outcome == Some(Outcome::Accepted);
    for module in programs.iter().filter(is_accepted).filter_map(|program| program.module.as_ref()) {
        trials.add(module);
    }
    let accepted = trials.all.len();
    let mut of_programs = Vec::new();
    for program in programs.iter().filter(|program| program.row.is_refused()) {
        of_programs.push(program.module.as_ref().map(|module| trials.add(module)).unwrap_or_default());
    }
    let jobs: Vec<&Job> = trials.all[accepted..].iter().map(|trial| &trial.job).collect();
    let mut outcomes = vec![Outcome::Accepted; accepted];
    outcomes.extend(compiler.compile(&jobs, "operations of refused programs")?);
    let outcomes = blamed(&trials.all, outcomes);
    for (program, of_program) in
        programs.iter_mut().filter(|program| program.row.is_refused()).zip(of_programs)
    {
        let refused = of_program.iter().filter(|index| matches!(outcomes[**index], Outcome::Refused(_)));
        for index in refused {
            let op = shown(&trials.all[*index].key);
            if !program.row.refused_ops.contains(&op) {
                program.row.refused_ops.push(op);
            }
        }
    }
    // Some operations of accepted programs, such as large constants, are in no trial.
    let uses = programs.iter().filter(is_accepted).flat_map(|program| program.uses.keys());
    let mut answers: HashMap<Key, Outcome> = uses.map(|key| (key.clone(), Outcome::Accepted)).collect();
    let mut forms: HashMap<&Key, Vec<(&Trial, Outcome)>> = HashMap::new();
    for (trial, outcome) in trials.all.iter().zip(outcomes) {
        forms.entry(&trial.key).or_default().push((trial, outcome));
    }
    answers.extend(forms.into_iter().map(|(key, forms)| (key.clone(), combined(&forms))));
    Ok(answers)
}

/// Returns the answer to several forms of an operation, which differ in attributes, sizes or regions. An operation whose contents
/// are refused is accepted if another form is.
fn combined(forms: &[(&Trial, Outcome)]) -> Outcome {
    let refused = forms.iter().filter_map(|(trial, outcome)| match outcome {
        Outcome::Refused(error) => Some((trial, error)),
        _ => None,
    });
    let refused: Vec<_> = refused.collect();
    let accepted: Vec<&Trial> =
        forms.iter().filter(|(_, outcome)| *outcome == Outcome::Accepted).map(|(trial, _)| *trial).collect();
    match (refused.first(), accepted.is_empty()) {
        (None, false) => Outcome::Accepted,
        (None, true) => forms[0].1.clone(),
        (Some((_, error)), true) => Outcome::Refused((*error).clone()),
        (Some((trial, error)), false) => {
            let is_known = |feature: &Feature| {
                accepted
                    .iter()
                    .any(|trial| trial.features.iter().any(|other| other.property == feature.property))
            };
            Outcome::Partly {
                refused: refused.len(),
                forms: refused.len() + accepted.len(),
                difference: differences(&trial.features, is_known),
                error: (*error).clone(),
            }
        }
    }
}

/// Returns the answers with those operations that are refused because of their contents told apart.
fn blamed(trials: &[Trial], outcomes: Vec<Outcome>) -> Vec<Outcome> {
    let refused = trials.iter().zip(&outcomes).filter(|(_, outcome)| **outcome != Outcome::Accepted);
    let refused: HashSet<&Key> = refused.map(|(trial, _)| &trial.key).collect();
    let blame = |(trial, outcome): (&Trial, &Outcome)| match outcome {
        // A message that names the operation itself is about the operation.
        Outcome::Refused(why)
            if !why.contains(trial.key.name())
                && trial.contents.iter().any(|inner| refused.contains(inner)) =>
        {
            Outcome::Contains(why.clone())
        }
        outcome => outcome.clone(),
    };
    trials.iter().zip(&outcomes).map(blame).collect()
}

/// Returns an operation with its element types, for a reader.
fn shown(key: &Key) -> String {
    match key.element_types.is_empty() {
        true => key.op.clone(),
        false => format!("{} of {}", key.op, key.element_types.join(", ")),
    }
}

/// Groups the programs and their operations by tier.
fn tiers(programs: &[Program], answers: &HashMap<Key, Outcome>) -> Vec<Tier> {
    let mut names: Vec<&str> = Vec::new();
    for program in programs {
        if !names.contains(&&*program.tier) {
            names.push(&program.tier);
        }
    }
    let tier = |name: &&str| {
        let of_tier: Vec<&Program> = programs.iter().filter(|program| program.tier == *name).collect();
        let mut counts: BTreeMap<&Key, (usize, usize)> = BTreeMap::new();
        for (key, uses) in of_tier.iter().flat_map(|program| &program.uses) {
            let count = counts.entry(key).or_default();
            *count = (count.0 + uses, count.1 + 1);
        }
        let ops = counts.into_iter().map(|(key, (uses, programs))| OpRow {
            op: key.op.clone(),
            element_types: key.element_types.clone(),
            uses,
            programs,
            outcome: answers.get(key).cloned(),
            decomposition: decomposition(key.name()),
        });
        Tier {
            name: (*name).to_owned(),
            required: of_tier.iter().any(|program| program.required),
            ops: ops.collect(),
            programs: of_tier.iter().map(|program| program.row.clone()).collect(),
        }
    };
    names.iter().map(tier).collect()
}

/// Returns the description of an operation's decomposition, if there is one.
fn decomposition(op: &str) -> Option<String> {
    decompositions().find(|decomposition| decomposition.op == op).map(|found| found.into.to_owned())
}

/// A plugin that compiles programs in child processes.
struct Compiler<'a> {
    plugin: &'a Path,
    options: &'a [String],
    program: &'a Path,
    timeout: Duration,
}

impl Compiler<'_> {
    /// Compiles programs. A child that ends is replaced for the remaining programs.
    fn compile(&self, jobs: &[&Job], what: &str) -> Result<Vec<Outcome>, String> {
        let mut outcomes = Vec::new();
        if jobs.is_empty() {
            return Ok(outcomes);
        }
        output::print_error(&format!("compiling {} {what} with {}", jobs.len(), self.plugin.display()));
        let scratch = Scratch::new("needs")?;
        let folder = scratch.folder("jobs")?;
        for (number, job) in jobs.iter().enumerate() {
            job.write(&folder.join(number.to_string()))?;
        }
        while outcomes.len() < jobs.len() {
            let mut worker = self.start(&folder, outcomes.len(), jobs.len())?;
            let end = self.collect(&mut worker, &mut outcomes, jobs.len())?;
            if let Some(end) = end {
                let printed = worker.printed();
                let printed = if printed.is_empty() { printed } else { format!("; it printed: {printed}") };
                outcomes.push(Outcome::Refused(format!("{end}{printed}")));
            }
        }
        Ok(outcomes)
    }

    /// Collects the answers of a child. Returns the way in which it ended during a compilation.
    fn collect(
        &self,
        worker: &mut Worker,
        outcomes: &mut Vec<Outcome>,
        count: usize,
    ) -> Result<Option<String>, String> {
        let located = |why: &str| format!("{}: {why}", self.plugin.display());
        let (mut is_ready, mut compiling) = (false, false);
        while outcomes.len() < count {
            let limit = format!("{:.0} s (--timeout changes the limit)", self.timeout.as_secs_f64());
            let end = match worker.receive(self.timeout) {
                Received::Line(line) => {
                    match serde_json::from_str(&line) {
                        Ok(Message::Unusable(why)) => return Err(located(&why)),
                        Ok(Message::Ready) => is_ready = true,
                        Ok(Message::Begins(_)) => compiling = true,
                        Ok(Message::Compiled(_, refusal)) => {
                            compiling = false;
                            outcomes.push(refusal.map_or(Outcome::Accepted, Outcome::Refused));
                        }
                        Err(_) => {}
                    }
                    continue;
                }
                Received::TimedOut if is_ready => format!("the compilation took longer than {limit}"),
                Received::TimedOut => format!("it took longer than {limit}"),
                Received::Ended(ending) => format!("the plugin ended the process with {ending}"),
            };
            if !is_ready {
                let printed = worker.printed();
                let printed = if printed.is_empty() { printed } else { format!("; it printed: {printed}") };
                return Err(located(&format!(
                    "while loading the plugin and creating a client: {end}{printed}"
                )));
            }
            if compiling || outcomes.len() < count {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    fn start(&self, jobs: &Path, first: usize, end: usize) -> Result<Worker, String> {
        let plugin: PathBuf = self.plugin.to_owned();
        let mut arguments: Vec<OsString> =
            vec!["needs-child".into(), plugin.into(), "--jobs".into(), jobs.into()];
        arguments.extend([format!("--first={first}").into(), format!("--end={end}").into()]);
        arguments.extend(self.options.iter().map(|option| format!("--option={option}").into()));
        Worker::start(self.program, &arguments, Prints::Kept)
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_that_refuses_one_form_of_an_operation_is_not_said_to_refuse_all() {
        let text = "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
            %0 = stablehlo.compare LT, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
            %1 = stablehlo.compare GT, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
            %2 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
            return %0, %1, %2 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
        }";
        let mut trials = Trials::default();
        trials.add(&pjrt_stablehlo::parse(text.to_owned()).unwrap());
        let answer = |outcomes: [Outcome; 3]| combined(&trials.all.iter().zip(outcomes).collect::<Vec<_>>());
        let refused = || Outcome::Refused("no total order".to_owned());
        let Outcome::Partly { refused: 1, forms: 3, difference, error } =
            answer([Outcome::Accepted, Outcome::Accepted, refused()])
        else {
            panic!("two of three forms are accepted");
        };
        let difference = difference.unwrap();
        assert!(
            difference.starts_with("compare_type is ") && difference.contains("TOTALORDER"),
            "{difference}"
        );
        assert_eq!(error, "no total order");
        assert_eq!(answer([refused(), refused(), refused()]), refused());
        assert_eq!(answer([Outcome::Accepted, Outcome::Accepted, Outcome::Accepted]), Outcome::Accepted);
        let contains = || Outcome::Contains(String::new());
        assert_eq!(answer([contains(), Outcome::Accepted, contains()]), Outcome::Accepted);
    }
}
