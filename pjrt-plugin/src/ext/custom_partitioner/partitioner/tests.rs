use super::*;
use std::sync::Mutex;

/// The results of a test's host, and the log of its calls.
#[derive(Default)]
struct Host {
    error: Option<(u32, &'static str)>,
    operand_shardings: Vec<Vec<u8>>,
    result_sharding: Option<Vec<u8>>,
    log: Vec<String>,
}

/// The host's memory behind an answer.
struct Backing {
    host: *const Mutex<Host>,
    bytes: Vec<Vec<u8>>,
    strings: Vec<JAX_CustomCallPartitioner_string>,
}

unsafe extern "C" fn clean_up(data: *mut c_void) {
    // SAFETY: `answer` made it.
    let mut backing = unsafe { Box::from_raw(data.cast::<Backing>()) };
    for bytes in &mut backing.bytes {
        bytes.fill(0xff);
    }
    // SAFETY: the host of a test outlives its partitioner.
    unsafe { &*backing.host }.lock().unwrap().log.push("cleaned up".to_owned());
}

/// The host of a partitioner, and the memory of its answer. The header receives the host's error.
unsafe fn answer<'a>(data: *mut Callbacks, header: &mut Header) -> (&'a Mutex<Host>, &'a mut Backing) {
    // SAFETY: the partitioner is one of `callbacks`.
    let host = unsafe { &*(*data).private_data.cast::<Mutex<Host>>() };
    let backing = Box::leak(Box::new(Backing { host, bytes: vec![], strings: vec![] }));
    header.data = ptr::from_mut(backing).cast();
    header.cleanup_fn = Some(clean_up);
    if let Some((code, message)) = host.lock().unwrap().error {
        header.has_error = true;
        header.code = PJRT_Error_Code(code);
        header.error_msg = backing.keep(message.as_bytes());
    }
    (host, backing)
}

impl Backing {
    fn keep(&mut self, bytes: &[u8]) -> JAX_CustomCallPartitioner_string {
        self.bytes.push(bytes.to_vec());
        string(self.bytes.last().unwrap())
    }
}

fn read(string: &JAX_CustomCallPartitioner_string) -> Vec<u8> {
    // SAFETY: the caller's strings live during the call.
    unsafe { borrowed_slice(string.data.cast::<u8>(), string.size, "") }.unwrap().to_vec()
}

fn describe(aval: &JAX_CustomCallPartitioner_aval) -> String {
    let shape = proto::Shape::decode(&*read(&aval.shape)).unwrap();
    let sharding = aval.has_sharding.then(|| read(&aval.sharding));
    let dims = |shape: &proto::Shape| format!("{}{:?}", shape.element_type, shape.dimensions);
    let parts: Vec<String> = shape.tuple_shapes.iter().map(dims).collect();
    format!("{}{parts:?} as {sharding:?}", dims(&shape))
}

unsafe extern "C" fn partition(data: *mut Callbacks, args: *mut PartitionArgs) {
    // SAFETY: the plugin passes its struct.
    let args = unsafe { &mut *args };
    // SAFETY: as `answer` says.
    let (host, backing) = unsafe { answer(data, &mut args.header) };
    // SAFETY: the array has this number of operands.
    let operands = unsafe { borrowed_slice(args.op_args.cast_const(), args.num_args, "") }.unwrap();
    let mut host = host.lock().unwrap();
    for aval in operands.iter().chain([&args.op_result]) {
        host.log.push(describe(aval));
    }
    args.mlir_module = backing.keep(&read(&args.backend_config).to_ascii_uppercase());
    backing.strings = host.operand_shardings.iter().map(|sharding| backing.keep(sharding)).collect();
    args.args_sharding = backing.strings.as_mut_ptr();
    if let Some(sharding) = &host.result_sharding {
        args.result_sharding = backing.keep(sharding);
    }
}

unsafe extern "C" fn infer_sharding(data: *mut Callbacks, args: *mut InferArgs) {
    // SAFETY: the plugin passes its struct.
    let args = unsafe { &mut *args };
    // SAFETY: as `answer` says.
    let (host, backing) = unsafe { answer(data, &mut args.header) };
    if let Some(sharding) = &host.lock().unwrap().result_sharding {
        args.has_result_sharding = true;
        args.result_sharding = backing.keep(sharding);
    }
}

unsafe extern "C" fn propagate_user_sharding(data: *mut Callbacks, args: *mut PropagateArgs) {
    // SAFETY: the plugin passes its struct.
    let args = unsafe { &mut *args };
    // SAFETY: as `answer` says.
    let (_, backing) = unsafe { answer(data, &mut args.header) };
    args.result_sharding = backing.keep(&read(&args.result_sharding));
}

unsafe extern "C" fn dtor(data: *mut Callbacks) {
    // SAFETY: `callbacks` made the struct; the host of a test outlives it.
    unsafe {
        let callbacks = Box::from_raw(data);
        (*callbacks.private_data.cast::<Mutex<Host>>()).lock().unwrap().log.push("freed".to_owned());
    }
}

fn callbacks(host: &Mutex<Host>) -> *mut Callbacks {
    Box::into_raw(Box::new(Callbacks {
        version: 0,
        private_data: ptr::from_ref(host).cast_mut().cast(),
        dtor: Some(dtor),
        partition: Some(partition),
        infer_sharding: Some(infer_sharding),
        propagate_user_sharding: Some(propagate_user_sharding),
        can_side_effecting_have_replicated_sharding: true,
    }))
}

fn with_host<R>(host: Host, ask: impl FnOnce(&CustomPartitioner) -> R) -> (R, Vec<String>) {
    let host = Mutex::new(host);
    // SAFETY: the struct is a new one.
    let partitioner = unsafe { CustomPartitioner::from_raw(callbacks(&host)) }.unwrap();
    assert!(partitioner.can_side_effecting_have_replicated_sharding());
    let answer = ask(&partitioner);
    drop(partitioner);
    (answer, host.into_inner().unwrap().log)
}

/// The sharding `devices=[2]0,1`, and its message.
fn halves() -> (Sharding, Vec<u8>) {
    let halves = Sharding::Tiled {
        tile_assignment_dimensions: vec![2],
        tile_assignment_devices: vec![0, 1],
        replicate_on_last_tile_dim: false,
    };
    (halves, vec![8, 3, 26, 1, 2, 34, 2, 0, 1])
}

fn array(sharding: Option<Sharding>) -> ShardedArray {
    ShardedArray { element_type: ElementType::F32, dims: vec![4], sharding }
}

#[test]
fn a_partition_is_copied_before_the_host_is_told_to_clean_up() {
    let (sharding, message) = halves();
    let host = Host {
        operand_shardings: vec![vec![], message.clone()],
        result_sharding: Some(message),
        ..Host::default()
    };
    let operands = [array(Some(sharding.clone())), array(None)];
    let ask = |partitioner: &CustomPartitioner| {
        partitioner.partition(&operands, &[array(Some(sharding.clone()))], b"key").unwrap()
    };
    let (got, log) = with_host(host, ask);
    let expected = Partition {
        program: b"KEY".to_vec(),
        operand_shardings: vec![Sharding::Replicated, sharding.clone()],
        result_shardings: vec![sharding.clone()],
    };
    assert_eq!(got, expected);
    let whole = "11[4][] as Some([8, 3, 26, 1, 2, 34, 2, 0, 1])";
    assert_eq!(log, [whole, "11[4][] as None", whole, "cleaned up", "freed"]);
}

#[test]
fn several_results_are_a_tuple() {
    let (sharding, message) = halves();
    // A tuple of halves, and of an array that every partition has whole.
    let tuple = [&[8, 2, 42, 9][..], &message, &[42, 0]].concat();
    let host = Host { result_sharding: Some(tuple), ..Host::default() };
    let results = [array(Some(sharding.clone())), array(Some(Sharding::Replicated))];
    let (got, log) = with_host(host, |partitioner| {
        let partition = partitioner.partition(&[], &results, b"").unwrap();
        assert_eq!(partitioner.propagate_user_sharding(&results, b"").unwrap(), partition.result_shardings);
        assert_eq!(
            partitioner.infer_sharding(&[], &results, b"").unwrap().as_ref(),
            Some(&partition.result_shardings)
        );
        partition
    });
    assert_eq!(got.result_shardings, [sharding, Sharding::Replicated]);
    assert_eq!(
        log[0],
        "13[][\"11[4]\", \"11[4]\"] as Some([8, 2, 42, 9, 8, 3, 26, 1, 2, 34, 2, 0, 1, 42, 0])"
    );
}

#[test]
fn the_hosts_error_is_the_plugins() {
    let host = || Host { error: Some((9, "no such mesh")), ..Host::default() };
    let one = [array(Some(Sharding::Replicated))];
    let (errors, log) = with_host(host(), |partitioner| {
        [
            partitioner.partition(&one, &one, b"").unwrap_err(),
            partitioner.infer_sharding(&one, &one, b"").unwrap_err(),
            partitioner.propagate_user_sharding(&one, b"").unwrap_err(),
        ]
    });
    for error in errors {
        assert_eq!((error.code(), error.message()), (ErrorCode::FailedPrecondition, "no such mesh"));
    }
    assert_eq!(log.iter().filter(|line| *line == "cleaned up").count(), 3);
}

#[test]
fn an_answer_that_is_not_of_its_form_is_an_error() {
    let (sharding, message) = halves();
    let one = [array(Some(sharding))];
    for (operand, result) in [
        // No message, no sharding of an array, a tuple's.
        (vec![0xff], message.clone()),
        (vec![8, 1], message.clone()),
        (message.clone(), vec![8, 2, 42, 0, 42, 0]),
    ] {
        let host =
            Host { operand_shardings: vec![operand], result_sharding: Some(result), ..Host::default() };
        let (error, log) = with_host(host, |partitioner| partitioner.partition(&one, &one, b"").unwrap_err());
        assert!(matches!(error.code(), ErrorCode::Internal | ErrorCode::InvalidArgument), "{error}");
        assert!(log.contains(&"cleaned up".to_owned()));
    }
    let (none, _) =
        with_host(Host::default(), |partitioner| partitioner.infer_sharding(&one, &one, b"").unwrap());
    assert_eq!(none, None);
    let (error, log) = with_host(Host::default(), |partitioner| {
        partitioner.propagate_user_sharding(&[array(None)], b"").unwrap_err()
    });
    assert_eq!((error.code(), &*log), (ErrorCode::InvalidArgument, &["freed".to_owned()][..]));
}

#[test]
fn partitioners_that_cannot_be_called_stay_the_hosts() {
    let host = Mutex::new(Host::default());
    let refused = |change: &dyn Fn(&mut Callbacks)| {
        let raw = callbacks(&host);
        // SAFETY: the struct is a new one, which nobody else has.
        unsafe {
            change(&mut *raw);
            let error = CustomPartitioner::from_raw(raw).unwrap_err();
            drop(Box::from_raw(raw));
            error
        }
    };
    assert_eq!(refused(&|callbacks| callbacks.version = 1).code(), ErrorCode::Unimplemented);
    assert_eq!(refused(&|callbacks| callbacks.partition = None).code(), ErrorCode::InvalidArgument);
    // SAFETY: null is refused.
    assert!(unsafe { CustomPartitioner::from_raw(ptr::null_mut()) }.is_err());
    assert!(host.lock().unwrap().log.is_empty());
}
