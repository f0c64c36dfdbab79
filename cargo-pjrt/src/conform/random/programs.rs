//! Random programs that return their parameters, sums of them and constants, and the arguments of their executions.

use std::fmt;
use std::rc::Rc;

use super::values::Value;
use super::world::World;
use crate::array::random::Random;
use crate::conform::harness::count_of;
use pjrt_testing::host::ElementType;

/// The type and the dimensions of a parameter.
pub(super) type Shape = (ElementType, Vec<i64>);

/// An output of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Parameter(usize),
    /// The sum of two parameters of one shape.
    Sum(usize, usize),
    /// An array of this number, with the shape of a parameter.
    Constant(usize, u8),
}

impl Output {
    /// Returns the parameters that the output depends on.
    pub(super) fn inputs(self) -> Vec<usize> {
        match self {
            Self::Parameter(of) => vec![of],
            Self::Sum(x, y) => vec![x, y],
            Self::Constant(..) => Vec::new(),
        }
    }

    /// Returns the parameter whose shape the output has.
    pub(super) fn like(self) -> usize {
        match self {
            Self::Parameter(like) | Self::Sum(like, _) | Self::Constant(like, _) => like,
        }
    }
}

/// The state of an argument at the time of the launch.
#[derive(Clone)]
pub(super) enum Argument {
    Ready(Rc<Value>),
    /// The host provides the elements after the launch, or sets the array to an error if the flag is set.
    Later(Rc<Value>, bool),
    /// The array is in error.
    Failed(Rc<Value>),
    /// The array that is also another argument, which is ready.
    Same(usize),
}

/// A program, and the arguments with which it is executed.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) parameters: Vec<Shape>,
    pub(super) outputs: Vec<Output>,
    /// The donated parameters, with the outputs that may use their memory.
    pub(super) donated: Vec<(usize, usize)>,
    /// The indices in `non_donatable_input_indices`.
    pub(super) protected: Vec<usize>,
    pub(super) replicas: usize,
    pub(super) partitions: usize,
    /// The devices of the assignment, replica by replica.
    pub(super) devices: Vec<usize>,
    /// `true` if the program is compiled for no device, and the execution names the only one.
    pub(super) is_portable: bool,
    /// The arguments of each launch and each device.
    pub(super) launches: Vec<Vec<Vec<Argument>>>,
    /// `true` if the host destroys the arguments directly after the launch.
    pub(super) is_hasty: bool,
}

/// Returns the type of an array in the text of a program, such as `tensor<2x3xf32>`.
fn tensor((element_type, dims): &Shape) -> String {
    let dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{}>", element_type.stablehlo_name())
}

/// Returns `true` if the kit computes sums of this type as every plugin does.
fn can_be_added(element_type: ElementType) -> bool {
    [ElementType::F32, ElementType::S32].contains(&element_type)
}

impl Case {
    /// Returns the text of the program.
    pub(super) fn text(&self) -> String {
        let parameter = |(index, shape): (usize, &Shape)| {
            let aliased = self.donated.iter().find(|(donated, _)| *donated == index);
            let alias = aliased.map(|(_, output)| format!(" {{tf.aliasing_output = {output} : i32}}"));
            format!("%p{index}: {}{}", tensor(shape), alias.unwrap_or_default())
        };
        let parameters: Vec<String> = self.parameters.iter().enumerate().map(parameter).collect();
        let types: Vec<String> =
            self.outputs.iter().map(|output| tensor(&self.parameters[output.like()])).collect();
        let (mut lines, mut results) = (String::new(), Vec::new());
        for (index, (output, ty)) in self.outputs.iter().zip(&types).enumerate() {
            match output {
                Output::Parameter(of) => results.push(format!("%p{of}")),
                Output::Sum(x, y) => lines += &format!("    %r{index} = stablehlo.add %p{x}, %p{y} : {ty}\n"),
                Output::Constant(like, number) => {
                    let is_float = self.parameters[*like].0 == ElementType::F32;
                    let number = if is_float { format!("{number}.0") } else { number.to_string() };
                    lines += &format!("    %r{index} = stablehlo.constant dense<{number}> : {ty}\n");
                }
            }
            if !matches!(output, Output::Parameter(_)) {
                results.push(format!("%r{index}"));
            }
        }
        let sizes = match self.devices.len() {
            1 => String::new(),
            _ => format!(
                " attributes {{mhlo.num_partitions = {} : i32, mhlo.num_replicas = {} : i32}}",
                self.partitions, self.replicas
            ),
        };
        let (arrow, colon) = match types.is_empty() {
            true => (String::new(), String::new()),
            false => (
                format!(" -> ({})", types.join(", ")),
                format!(" {} : {}", results.join(", "), types.join(", ")),
            ),
        };
        let parameters = parameters.join(", ");
        format!(
            "module @random{sizes} {{\n  func.func public @main({parameters}){arrow} {{\n{lines}    return{colon}\n  }}\n}}\n"
        )
    }

    /// Returns the elements of an argument of a device.
    pub(super) fn value<'a>(&self, arguments: &'a [Argument], index: usize) -> &'a Rc<Value> {
        match &arguments[index] {
            Argument::Ready(value) | Argument::Later(value, _) | Argument::Failed(value) => value,
            Argument::Same(other) => self.value(arguments, *other),
        }
    }

    /// Returns the elements of an output of a device.
    pub(super) fn expected(&self, arguments: &[Argument], output: Output) -> Value {
        let like = self.value(arguments, output.like());
        let bytes = match output {
            Output::Parameter(_) => return Value::clone(like),
            Output::Sum(_, other) => {
                let pairs =
                    like.bytes.as_chunks().0.iter().zip(self.value(arguments, other).bytes.as_chunks().0);
                let is_float = like.element_type == ElementType::F32;
                pairs
                    .flat_map(|(x, y): (&[u8; 4], &[u8; 4])| match is_float {
                        true => (f32::from_le_bytes(*x) + f32::from_le_bytes(*y)).to_le_bytes(),
                        false => i32::from_le_bytes(*x).wrapping_add(i32::from_le_bytes(*y)).to_le_bytes(),
                    })
                    .collect()
            }
            Output::Constant(_, number) => match like.element_type {
                ElementType::F32 => f32::from(number).to_le_bytes().repeat(like.len()),
                _ => i32::from(number).to_le_bytes().repeat(like.len()),
            },
        };
        Value { bytes, ..Value::clone(like) }
    }

    /// Returns `true` if an argument is in error, or will be.
    pub(super) fn fails(&self, arguments: &[Argument], index: usize) -> bool {
        matches!(arguments[index], Argument::Later(_, true) | Argument::Failed(_))
    }

    /// Keeps only the first parameters, and what depends on no other.
    fn with_parameters(&self, count: usize) -> Self {
        let mut case = self.clone();
        let kept =
            |output: &Output| output.like() < count && output.inputs().iter().all(|input| *input < count);
        let outputs: Vec<usize> = (0..self.outputs.len()).filter(|at| kept(&self.outputs[*at])).collect();
        case.keep_outputs(&outputs);
        case.donated.retain(|(parameter, _)| *parameter < count);
        case.protected.retain(|parameter| *parameter < count);
        case.parameters.truncate(count);
        case.launches.iter_mut().flatten().for_each(|list| list.truncate(count));
        case
    }

    /// Keeps only these outputs.
    fn keep_outputs(&mut self, kept: &[usize]) {
        self.outputs = kept.iter().map(|at| self.outputs[*at]).collect();
        let new = |output: usize| kept.iter().position(|at| *at == output);
        self.donated = self.donated.iter().filter_map(|(from, to)| Some((*from, new(*to)?))).collect();
    }

    /// Returns cases that are simpler in one respect.
    pub(super) fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        if self.devices.len() > 1 {
            let launches = self.launches.iter().map(|launch| vec![launch[0].clone()]).collect();
            let devices = vec![self.devices[0]];
            all.push(Self { replicas: 1, partitions: 1, devices, launches, ..self.clone() });
        }
        if self.launches.len() > 1 {
            all.extend(
                self.launches.iter().map(|launch| Self { launches: vec![launch.clone()], ..self.clone() }),
            );
        }
        if !self.donated.is_empty() {
            all.push(Self { donated: Vec::new(), protected: Vec::new(), ..self.clone() });
            all.extend((0..self.donated.len()).map(|at| {
                let mut case = self.clone();
                case.donated.remove(at);
                case
            }));
        }
        let mut ready = self.clone();
        if ready.make_ready() {
            all.push(ready);
        }
        all.extend(self.is_portable.then(|| Self { is_portable: false, ..self.clone() }));
        all.extend(self.is_hasty.then(|| Self { is_hasty: false, ..self.clone() }));
        let (parameters, outputs) = (self.parameters.len(), self.outputs.len());
        for count in [parameters / 2, parameters * 3 / 4, parameters.saturating_sub(1)] {
            all.extend((count < parameters).then(|| self.with_parameters(count)));
        }
        for kept in [0..outputs / 2, outputs / 2..outputs, 0..outputs.saturating_sub(1), 1..outputs.max(1)] {
            if kept.len() < outputs {
                let mut case = self.clone();
                case.keep_outputs(&kept.collect::<Vec<_>>());
                all.push(case);
            }
        }
        all
    }

    /// Makes all arguments ready. Returns `false` if they were.
    fn make_ready(&mut self) -> bool {
        let mut is_changed = false;
        for argument in self.launches.iter_mut().flatten().flatten() {
            if let Argument::Later(value, _) | Argument::Failed(value) = argument {
                *argument = Argument::Ready(Rc::clone(value));
                is_changed = true;
            }
        }
        is_changed
    }
}

/// Returns a random number of parameters or outputs: mostly few, sometimes more than 32 or 64.
fn count(random: &mut Random) -> usize {
    match random.below(8) {
        0..=3 => random.below(5),
        4..=5 => random.below(20),
        6 => 30 + random.below(10),
        _ => 60 + random.below(11),
    }
}

/// Returns random shapes of parameters.
fn parameters(world: &World<'_>, random: &mut Random, is_simple: bool) -> Vec<Shape> {
    let count = count(random).max(usize::from(is_simple));
    let most = if count > 8 { 60 } else { 3000 };
    let mut all: Vec<Shape> = Vec::new();
    while all.len() < count {
        // Many parameters have few shapes, so that a plugin can confuse them.
        if !all.is_empty() && (random.one_in(2) || all.len() > 4 && !random.one_in(8)) {
            let repeated = random.of(&all).clone();
            all.push(repeated);
            continue;
        }
        let element_type = match random.below(if is_simple { 1 } else { 4 }) {
            0 => ElementType::F32,
            1 => ElementType::S32,
            _ => *random.of(&world.types),
        };
        let dims = world.dims(random);
        // Programs have only one type of one bit.
        let has_name =
            world.types.contains(&element_type) && !["i1s", "ui1"].contains(&element_type.stablehlo_name());
        if has_name && dims.iter().product::<i64>() <= most {
            all.push((element_type, dims));
        }
    }
    all
}

/// Returns random outputs.
fn outputs(random: &mut Random, shapes: &[Shape], is_simple: bool) -> Vec<Output> {
    let count = if shapes.is_empty() { 0 } else { count(random) };
    let output = |random: &mut Random| {
        let like = random.below(shapes.len());
        let same: Vec<usize> = (0..shapes.len()).filter(|at| shapes[*at] == shapes[like]).collect();
        match random.below(5) {
            _ if !can_be_added(shapes[like].0) => Output::Parameter(like),
            0 if !is_simple && random.one_in(4) => Output::Constant(like, random.below(100) as u8),
            0..=2 if !is_simple => Output::Parameter(like),
            _ => Output::Sum(like, *random.of(&same)),
        }
    };
    (0..count).map(|_| output(random)).collect()
}

/// Returns random pairs of donated parameters and outputs of the same shape.
fn donated(random: &mut Random, shapes: &[Shape], outputs: &[Output]) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = Vec::new();
    for (at, output) in outputs.iter().enumerate() {
        let shape = &shapes[output.like()];
        let free: Vec<usize> = (0..shapes.len())
            .filter(|parameter| {
                shapes[*parameter] == *shape && all.iter().all(|(donated, _)| donated != parameter)
            })
            .collect();
        if !free.is_empty() && random.one_in(3) {
            all.push((*random.of(&free), at));
        }
    }
    all
}

/// Returns a random case for this number of devices.
pub(super) fn case(world: &World<'_>, random: &mut Random, of_devices: usize) -> Case {
    // Some plugins compile only sums of F32.
    let is_simple = random.one_in(2) && world.types.contains(&ElementType::F32);
    let parameters = parameters(world, random, is_simple);
    let outputs = outputs(random, &parameters, is_simple);
    let donated = if random.one_in(2) { donated(random, &parameters, &outputs) } else { Vec::new() };
    let mut protected: Vec<usize> = (0..parameters.len()).filter(|_| random.one_in(3)).collect();
    random.shuffle(&mut protected);
    if random.one_in(2) {
        protected.clear();
    }
    let mut devices: Vec<usize> = (0..world.devices.len()).collect();
    random.shuffle(&mut devices);
    devices.truncate(of_devices);
    let partitions = match random.below(3) {
        0 => of_devices,
        1 if of_devices.is_multiple_of(2) => 2,
        _ => 1,
    };
    let mut case = Case {
        parameters,
        outputs,
        donated,
        protected,
        replicas: of_devices / partitions,
        partitions,
        devices,
        is_portable: of_devices == 1 && random.one_in(4),
        launches: Vec::new(),
        is_hasty: random.one_in(4),
    };
    case.launches = (0..1 + random.below(2)).map(|_| launch(random, &case)).collect();
    case
}

/// Returns random arguments for each device.
fn launch(random: &mut Random, case: &Case) -> Vec<Vec<Argument>> {
    let are_unready = random.one_in(2);
    let count = case.parameters.len();
    let mut all: Vec<Vec<Argument>> = Vec::new();
    for place in 0..case.devices.len() {
        let mut list: Vec<Argument> = Vec::new();
        for (index, (element_type, dims)) in case.parameters.iter().enumerate() {
            // Arguments without a sharding are the same in all partitions.
            let of_replica = place / case.partitions * case.partitions;
            let value = match all.get(of_replica) {
                Some(first) if of_replica < place => Rc::clone(case.value(first, index)),
                _ => Rc::new(Value::random(random, *element_type, dims)),
            };
            let donates = |index: usize| case.donated.iter().any(|(donated, _)| *donated == index);
            let other = if index == 0 { 0 } else { random.below(index) };
            let is_same = index > 0
                && random.one_in(8)
                && case.partitions == 1
                && case.parameters[other] == case.parameters[index]
                && matches!(list[other], Argument::Ready(_))
                && !donates(other)
                && !donates(index);
            list.push(match random.below(2 + 2 * count) {
                _ if is_same => Argument::Same(other),
                0..=3 if !element_type.fills_bytes() => Argument::Ready(value),
                0 if are_unready => Argument::Failed(value),
                1..=3 if are_unready => Argument::Later(value, random.one_in(3)),
                _ => Argument::Ready(value),
            });
        }
        all.push(list);
    }
    all
}

/// Writes the numbers of arguments that are not simply ready.
fn write_arguments(f: &mut fmt::Formatter<'_>, device: usize, list: &[Argument]) -> fmt::Result {
    for (index, argument) in list.iter().enumerate() {
        let state = match argument {
            Argument::Ready(_) => continue,
            Argument::Later(_, false) => "provided after the launch".to_owned(),
            Argument::Later(_, true) => "set to an error after the launch".to_owned(),
            Argument::Failed(_) => "in error".to_owned(),
            Argument::Same(other) => format!("the same array as argument {other}"),
        };
        write!(f, "; argument {index} in list {device} is {state}")?;
    }
    Ok(())
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "compile a program of {} and {}",
            count_of(self.parameters.len(), "parameter"),
            count_of(self.outputs.len(), "output")
        )?;
        let mut types: Vec<String> =
            self.parameters.iter().map(|(ty, dims)| format!("{ty}{dims:?}")).collect();
        let more = types.len().saturating_sub(6);
        types.truncate(6);
        write!(f, " with the parameters {}", types.join(", "))?;
        if more > 0 {
            write!(f, " and {more} others")?;
        }
        if self.outputs.len() <= 6 {
            write!(f, ", the outputs {:?}", self.outputs)?;
        }
        let donated: Vec<usize> = self.donated.iter().map(|(parameter, _)| *parameter).collect();
        if !donated.is_empty() {
            write!(f, ", donating {donated:?} with non_donatable_input_indices {:?}", self.protected)?;
        }
        let (replicas, partitions) =
            (count_of(self.replicas, "replica"), count_of(self.partitions, "partition"));
        write!(f, " for {replicas} and {partitions} on the devices {:?}", self.devices)?;
        for (number, launch) in self.launches.iter().enumerate() {
            write!(f, "; launch {number}")?;
            for (device, list) in launch.iter().enumerate() {
                write_arguments(f, device, list)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_valid_and_have_expected_outputs() {
        let shape = (ElementType::F32, vec![2]);
        let value = |x: f32| {
            let bytes = x.to_le_bytes().repeat(2);
            Rc::new(Value { element_type: ElementType::F32, dims: vec![2], bytes })
        };
        let case = Case {
            parameters: vec![shape.clone(), shape],
            outputs: vec![Output::Sum(0, 1), Output::Parameter(1), Output::Constant(0, 7)],
            donated: vec![(1, 1)],
            protected: Vec::new(),
            replicas: 1,
            partitions: 1,
            devices: vec![0],
            is_portable: false,
            launches: vec![vec![vec![Argument::Ready(value(1.5)), Argument::Ready(value(2.0))]]],
            is_hasty: false,
        };
        for case in [case.clone()].into_iter().chain(case.simpler()) {
            let text = case.text();
            let module = pjrt_stablehlo::parse(text.as_bytes().to_vec());
            assert!(module.is_ok(), "{text}: {module:?}");
        }
        let arguments = &case.launches[0][0];
        let outputs: Vec<Vec<u8>> =
            case.outputs.iter().map(|output| case.expected(arguments, *output).bytes).collect();
        let expected = [3.5_f32, 2.0, 7.0].map(|x| x.to_le_bytes().repeat(2));
        assert_eq!(outputs, expected);
    }
}
