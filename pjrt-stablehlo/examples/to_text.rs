//! Reads many programs and prints them as MLIR text, which another parser can compare with its own result.
//!
//! Each line of standard input is a JSON object that describes a program: `{"name": ..., "path": ...}`, with `off` and `len` (in
//! bytes) if the program is a part of the file. Standard output has a line for each, in the same order:
//! `{"name": ..., "text": ...}`, with locations if the input contains `"locations": true`, or `{"name": ..., "error": ...}`. The
//! text is read and printed again; a difference is also an error.
//!
//! ```sh
//! echo '{"name": "f", "path": "f.mlirbc"}' | cargo run --example to_text
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};

use pjrt_stablehlo::Bytes;
use serde::Deserialize;
use serde_json::json;

/// A program, as a line of the input describes it.
#[derive(Deserialize)]
struct Program {
    name: String,
    path: String,
    off: Option<usize>,
    len: Option<usize>,
    #[serde(default)]
    locations: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut files: HashMap<String, Bytes> = HashMap::new();
    let mut output = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let program: Program = serde_json::from_str(&line?)?;
        let file = match files.get(&program.path) {
            Some(file) => file.clone(),
            None => {
                let bytes = fs::read(&program.path).map_err(|error| format!("{}: {error}", program.path))?;
                files.entry(program.path.clone()).or_insert(bytes.into()).clone()
            }
        };
        let start = program.off.unwrap_or(0);
        let len = program.len.unwrap_or(file.len().saturating_sub(start));
        let end = start.checked_add(len).ok_or("a program ends behind the largest number")?;
        let part = file.slice(start..end).ok_or_else(|| format!("{} is shorter than {end}", program.path))?;
        let answer = match text(part, program.locations) {
            Ok(text) => json!({ "name": program.name, "text": text }),
            Err(error) => json!({ "name": program.name, "error": error }),
        };
        writeln!(output, "{answer}")?;
    }
    Ok(output.flush()?)
}

/// Returns the text of a program, after checking that the text is that of the same module.
fn text(program: Bytes, locations: bool) -> Result<String, String> {
    let print = |program: Bytes| {
        let module = pjrt_stablehlo::parse(program).map_err(|error| error.to_string())?;
        Ok::<_, String>(if locations { format!("{module:#}") } else { module.to_string() })
    };
    let text = print(program)?;
    let again = print(text.as_bytes().into()).map_err(|error| format!("what was printed: {error}"))?;
    if again != text {
        let differs = text.lines().zip(again.lines()).find(|(one, other)| one != other);
        return Err(format!("what was printed reads as another module: {differs:?}"));
    }
    Ok(text)
}
