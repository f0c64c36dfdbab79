//! Reads many programs and prints them as MLIR text, which another parser can compare with its own result.
//!
//! Each line of standard input is a JSON object that describes a program: `{"name": ..., "path": ...}`, with `off` and `len` (in
//! bytes) if the program is a part of the file. Standard output has a line for each, in the same order:
//! `{"name": ..., "text": ...}`, with locations if the input contains `"locations": true`, or `{"name": ..., "error": ...}`. The
//! text is read and printed again; a difference is also an error.
//!
//! If the input contains a version of VHLO, such as `"artifact": "1.9.0"`, the line also has the program as `bytecode` and as
//! `artifact` in hexadecimal digits, or `bytecode_error` and `artifact_error`.
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
    artifact: Option<String>,
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
        let mut answer = match text(part.clone(), program.locations) {
            Ok(text) => json!({ "name": program.name, "text": text }),
            Err(error) => json!({ "name": program.name, "error": error }),
        };
        if let Some(version) = program.artifact
            && answer["error"].is_null()
        {
            let module = pjrt_stablehlo::parse(part)?;
            let forms = [
                ("bytecode", pjrt_stablehlo::write_bytecode(&module)),
                ("artifact", pjrt_stablehlo::write_portable_artifact(&module, version.parse()?)),
            ];
            for (form, written) in forms {
                match written {
                    Ok(bytes) => answer[form] = hexadecimal(&bytes).into(),
                    Err(error) => answer[format!("{form}_error")] = error.to_string().into(),
                }
            }
        }
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
    let again =
        print(text.as_bytes().into()).map_err(|error| format!("the printed text cannot be read: {error}"))?;
    if again != text {
        let differs = text.lines().zip(again.lines()).find(|(one, other)| one != other);
        return Err(format!("the printed text is read as a different module: {differs:?}"));
    }
    Ok(text)
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
