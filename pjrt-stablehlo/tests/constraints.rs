//! Every constraint of the StableHLO specification, violated on purpose: `data/constraints.txt` has a program for each, and
//! its valid neighbor.

use std::collections::{BTreeMap, BTreeSet};

use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::{Constraint, Error, Module};

const TABLE: &str = include_str!("data/constraints.txt");

/// Constraints that the specification lists for all its operations together.
const CONSTRAINTS: usize = 453;

/// Operations without a section in the specification, whose operands and results depend on their context.
const UNSPECIFIED: &[&str] = &[
    "func.call",
    "func.return",
    "sdy.manual_computation",
    "sdy.reshard",
    "sdy.return",
    "sdy.sharding_constraint",
    "sdy.sharding_group",
    "stablehlo.return",
];

/// The expected outcome of a program in which text is replaced.
struct Rule {
    line: usize,
    /// `C1`, `I1`, `ok`, ...
    name: String,
    /// Replacements; `None` with a reason instead.
    edits: Option<Vec<(String, String)>>,
}

/// A valid program and its variants.
struct Section {
    line: usize,
    op: String,
    /// Constraints that the specification lists.
    constraints: u8,
    program: Vec<String>,
    rules: Vec<Rule>,
}

/// Lines with their numbers.
type Lines<'a> = Vec<(usize, &'a str)>;

fn sections() -> Vec<Section> {
    let mut lets: Vec<(String, String)> = Vec::new();
    let mut headers: Vec<(usize, &str, Lines<'_>)> = Vec::new();
    for (index, line) in TABLE.lines().enumerate() {
        if let Some(header) = line.strip_prefix("# ") {
            headers.push((index + 1, header, Vec::new()));
        } else if let Some(definition) = line.strip_prefix("let ") {
            let (name, text) = definition.split_once(" = ").unwrap();
            lets.push((name.to_owned(), text.to_owned()));
        } else if let Some((_, _, lines)) = headers.last_mut()
            && !line.trim().is_empty()
        {
            lines.push((index + 1, line));
        }
    }
    // Longer names first, so that none is taken for the start of another.
    lets.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let expand = |text: &str, op: &str| {
        let text = lets.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        // Only a name in quotes: symbols begin with the same sign.
        text.replace("\"stablehlo.@\"", &format!("\"stablehlo.{op}\""))
    };
    let mut sections = Vec::new();
    for (line, header, lines) in headers {
        let (ops, constraints) = header.rsplit_once(' ').unwrap();
        for op in ops.split(", ") {
            let mut section = Section {
                line,
                op: format!("stablehlo.{op}"),
                constraints: constraints.parse().unwrap(),
                program: Vec::new(),
                rules: Vec::new(),
            };
            for &(line, text) in &lines {
                let rule = text.split_once(": ").filter(|(_, rest)| rest.contains(" =>"));
                if let Some((name, reason)) = text.split_once(" -- ") {
                    assert!(!reason.is_empty());
                    section.rules.push(Rule { line, name: name.to_owned(), edits: None });
                } else if let Some((name, edits)) = rule {
                    let edits = edits.split(" ; ").map(|edit| {
                        let (from, to) = edit.split_once(" =>").unwrap();
                        (expand(from, op), expand(to.strip_prefix(' ').unwrap_or(to), op))
                    });
                    section.rules.push(Rule { line, name: name.to_owned(), edits: Some(edits.collect()) });
                } else {
                    assert!(section.rules.is_empty(), "line {line}: expected a rule");
                    section.program.push(expand(text, op));
                }
            }
            sections.push(section);
        }
    }
    sections
}

/// Splits at commas that are not in brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (index, c) in list.char_indices() {
        match c {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' if !list[..index].ends_with('-') => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// A module whose `main` has an operation, with numbered operands as arguments.
fn module_text(program: &[String]) -> String {
    let (op, before) = program.split_last().expect("a section has a program");
    let (functions, constants): (Vec<&String>, Vec<&String>) =
        before.iter().partition(|line| line.starts_with("func.func"));
    let operands = &op[op.find('(').unwrap() + 1..];
    let operands = split(&operands[..operands.find(')').unwrap()]);
    let types = &op[op.rfind(" : (").unwrap() + 4..];
    // The first bracket that closes more than was opened.
    let mut depth = 0;
    let end = types.char_indices().position(|(_, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    });
    let types = split(&types[..end.unwrap()]);
    let arguments: Vec<String> = operands
        .iter()
        .zip(&types)
        .filter(|(name, _)| name[1..].chars().all(|c| c.is_ascii_digit()))
        .map(|(name, ty)| format!("{name}: {ty}"))
        .collect();
    let join = |lines: Vec<&String>| lines.into_iter().cloned().collect::<Vec<_>>().join("\n");
    format!(
        "{}\nfunc.func @main({}) {{\n{}\n{op}\nfunc.return\n}}\n",
        join(functions),
        arguments.join(", "),
        join(constants)
    )
}

fn parse(program: &[String]) -> Result<Module, Error> {
    pjrt_stablehlo::parse(module_text(program).into_bytes())
}

fn edited(program: &[String], edits: &[(String, String)]) -> Result<Vec<String>, String> {
    edits.iter().try_fold(program.to_vec(), |program, (from, to)| {
        if !program.iter().any(|text| text.contains(from)) {
            return Err(format!("nothing to replace for '{from}'"));
        }
        Ok(program.iter().map(|text| text.replace(from, to)).collect())
    })
}

fn constraint(name: &str) -> Option<Constraint> {
    let number = name.get(1..)?.parse().ok()?;
    match &name[..1] {
        "C" => Some(Constraint::C(number)),
        "I" => Some(Constraint::I(number)),
        "O" => Some(Constraint::O(number)),
        _ => None,
    }
}

#[test]
fn broken_constraints_are_named_and_valid_neighbors_pass() {
    let mut failures = Vec::new();
    let (mut valid, mut broken) = (0, 0);
    for section in sections() {
        if let Err(error) = parse(&section.program) {
            failures.push(format!("line {} {}: {error}", section.line, section.op));
            continue;
        }
        valid += 1;
        for rule in &section.rules {
            let Some(edits) = &rule.edits else { continue };
            let program = match edited(&section.program, edits) {
                Ok(program) => program,
                Err(message) => {
                    failures.push(format!("line {} {}: {message}", rule.line, section.op));
                    continue;
                }
            };
            let outcome = parse(&program);
            if rule.name == "ok" {
                valid += 1;
                if let Err(error) = outcome {
                    failures
                        .push(format!("line {} {}: expected to be valid: {error}", rule.line, section.op));
                }
                continue;
            }
            broken += 1;
            let expected = constraint(&rule.name);
            let of_type = rule.name.strip_prefix('T').map(|number| format!("(C{number} of quantized types)"));
            match outcome {
                Err(error) if of_type.as_ref().is_some_and(|name| error.to_string().contains(name)) => {}
                Ok(_) => failures.push(format!("line {} {} {}: accepted", rule.line, section.op, rule.name)),
                Err(error) if error.op.as_deref() != Some(&*section.op) || error.constraint != expected => {
                    failures.push(format!("line {} {} {}: {error}", rule.line, section.op, rule.name));
                }
                Err(error) => {
                    let text = error.to_string();
                    let name = expected.map(|constraint| format!(" ({constraint})")).unwrap_or_default();
                    assert!(text.starts_with(&format!("{}{name}: ", section.op)), "{text}");
                    assert!(
                        text.contains("expected")
                            || text.contains("has no function")
                            || text.contains("leaves no valid"),
                        "{text}"
                    );
                }
            }
        }
    }
    println!("{valid} valid and {broken} broken programs");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_constraint_and_input_of_the_specification_is_in_the_table() {
    let mut constraints: BTreeMap<String, u8> = BTreeMap::new();
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for section in sections() {
        let count = *constraints.entry(section.op.clone()).or_insert(section.constraints);
        assert_eq!(count, section.constraints, "{}", section.op);
        named.entry(section.op).or_default().extend(section.rules.into_iter().map(|rule| rule.name));
    }
    let total: usize = constraints.values().map(|&count| usize::from(count)).sum();
    let mut missing = Vec::new();
    for code in OpCode::ALL.iter().filter(|code| !UNSPECIFIED.contains(&code.info().name)) {
        let info = code.info();
        let Some(names) = named.get(info.name) else {
            missing.push(info.name.to_owned());
            continue;
        };
        let numbers = (1..=constraints[info.name]).map(|number| format!("C{number}"));
        let inputs = (1..=info.operands.len()).map(|number| format!("I{number}"));
        missing.extend(
            numbers
                .chain(inputs)
                .filter(|name| !names.contains(name))
                .map(|name| format!("{} {name}", info.name)),
        );
    }
    assert!(missing.is_empty(), "without a program: {}", missing.join(", "));
    assert_eq!(total, CONSTRAINTS);
}

/// Returns the ranges of the numbers of attributes and types in a text.
fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let is_number = |c: char| c.is_ascii_digit() || c == '-';
    let mut numbers: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, c) in text.char_indices().filter(|(_, c)| is_number(*c)) {
        match numbers.last_mut() {
            Some(number) if number.end == index => number.end += c.len_utf8(),
            _ => numbers.push(index..index + c.len_utf8()),
        }
    }
    // Not those in names and types of elements.
    let before = |number: &std::ops::Range<usize>| text[..number.start].chars().next_back();
    numbers.retain(|number| {
        text[number.clone()].parse::<i64>().is_ok() && before(number).is_none_or(|c| " [<,x".contains(c))
    });
    numbers
}

#[test]
fn programs_with_extreme_numbers_give_errors_or_modules() {
    let mut outcomes = (0, 0);
    for section in sections() {
        let (op, before) = section.program.split_last().unwrap();
        for number in numbers(op) {
            for extreme in [i64::MIN + 1, -2, 0, 3, 1 << 40, i64::MAX] {
                let mut changed = op.clone();
                changed.replace_range(number.clone(), &extreme.to_string());
                match parse(&[before, &[changed]].concat()) {
                    Ok(_) => outcomes.0 += 1,
                    Err(_) => outcomes.1 += 1,
                }
            }
        }
    }
    println!("{} programs with extreme numbers are valid, {} are not", outcomes.0, outcomes.1);
    assert!(outcomes.0 > 0 && outcomes.1 > 1000);
}
