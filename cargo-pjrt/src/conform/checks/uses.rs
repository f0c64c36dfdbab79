//! Uses of the objects of a client: after a call that failed, each works as before.

use crate::conform::harness::{f32_bytes, numbers, upload_four};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CreateOption, ElementType, Error, Event, Topology, ViewMemory,
};

/// The objects that are used. The fields are destroyed in this order.
pub(super) struct Objects {
    /// An array with the elements [`X`].
    pub(super) x: Buffer,
    /// A serialized program, or no bytes if the plugin serializes none.
    pub(super) serialized: Vec<u8>,
    /// The options of clients.
    pub(super) options: Vec<CreateOption>,
    pub(super) client: Client,
}

/// The elements of the array.
pub(super) const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

/// A use of an object.
pub(super) struct Use {
    /// The use, as the subject of a sentence.
    pub(super) what: &'static str,
    /// `true` if it is a use of argument 0, which a program may have donated.
    pub(super) is_of_x: bool,
    /// Performs the use. Returns `true` if the result is right.
    pub(super) call: fn(&Objects) -> Result<bool, Error>,
}

const fn of_x(what: &'static str, call: fn(&Objects) -> Result<bool, Error>) -> Use {
    Use { what, is_of_x: true, call }
}

const fn other(what: &'static str, call: fn(&Objects) -> Result<bool, Error>) -> Use {
    Use { what, is_of_x: false, call }
}

/// The uses: of each function that a failed call could leave unusable.
pub(super) const USES: &[Use] = &[
    of_x("a raw copy of argument 0", |s| Ok(s.x.read_raw(0, 16)?? == f32_bytes(&X))),
    of_x("a raw copy of argument 0 whose destination the host names later", |s| {
        Ok(s.x.read_raw_later(4, 8)?.finish()? == f32_bytes(&X[1..3]))
    }),
    of_x("a copy of argument 0 to its memory", |s| has_x(&s.x.copy_to_memory(s.x.memory()?)?)),
    of_x("a copy of argument 0 to the last device", |s| {
        let last = s.client.addressable_devices()?.pop();
        has_x(&s.x.copy_to_device(last.map_or_else(|| s.client.device(), Ok)?)?)
    }),
    of_x("holding argument 0 and releasing it", |s| {
        s.x.hold()?;
        let address = s.x.opaque_pointer();
        s.x.release()?;
        Ok(address? != 0)
    }),
    of_x("the ready event of argument 0", |s| s.x.ready()?.wait().map(|()| true)),
    of_x("the description of argument 0", |s| {
        Ok(s.x.dims()? == [4] && s.x.element_type()? == ElementType::F32 && !s.x.is_deleted()?)
    }),
    // A bitcast may take its operand.
    other("a bitcast", |s| has_x(&upload_four(&s.client, &X)?.bitcast(ElementType::F32, &[4])?)),
    other("an array that the host donates with a dependency", |s| {
        let (array, dependency) = upload_four(&s.client, &X)?.donate()?;
        dependency.finish(Ok(()));
        has_x(&array)
    }),
    other("an array of a transfer manager", |s| {
        let manager = s
            .client
            .transfer_manager(&[(ElementType::F32, vec![4])], s.client.device()?.default_memory()?)?;
        let array = manager.retrieve(0)?;
        manager.write(0, &f32_bytes(&X), 0, true)?.wait()?;
        has_x(&array)
    }),
    other("an alias", |s| {
        let (alias, handle) = s.client.alias(ElementType::F32, &[4], s.client.device()?.default_memory()?)?;
        s.client.fulfill(handle, Ok(&upload_four(&s.client, &X)?))?;
        has_x(&alias)
    }),
    other("an array that is in error", |s| {
        let memory = s.client.device()?.default_memory()?;
        let array = s.client.error_buffer((Code::ABORTED, "of the host"), ElementType::F32, &[4], memory)?;
        Ok(array
            .ready()?
            .wait()
            .is_err_and(|error| error.code == Code::ABORTED && error.message.contains("of the host")))
    }),
    other("an array without initial data", |s| {
        let memory = s.client.device()?.default_memory()?;
        Ok(s.client.uninitialized(ElementType::F32, &[4], memory)?.dims()? == [4])
    }),
    other("a view", |s| {
        let memory = ViewMemory::new(&f32_bytes(&X));
        has_x(&s.client.view(&memory, ElementType::F32, &[4], s.client.device()?)?)
    }),
    other("an event of the host", |s| {
        let event = Event::create(s.client.plugin())?;
        event.set(Code::OK, "")?;
        event.wait().map(|()| true)
    }),
    other("the lookup of a device", |s| {
        let device = s.client.device()?;
        Ok(s.client.lookup_device(device.description()?.id()?)? == device)
    }),
    other("the default device assignment", |s| Ok(s.client.default_assignment(1, 1, 1)?.len() == 1)),
    other("the default layout of an array", |s| {
        Ok(!s.client.default_layout(ElementType::F32, &[2, 3])?.is_empty())
    }),
    other("a topology that was serialized", |s| {
        let bytes = s.client.topology()?.serialize()?.0;
        Topology::deserialize(s.client.plugin(), &bytes).map(|_| true)
    }),
    other("a serialized program", |s| s.client.deserialize(&s.serialized).map(|_| true)),
    other("a serialized program with other compile options", |s| {
        let options = CompileOptions::default().encode();
        s.client.deserialize_with(&s.serialized, &options).map(|_| true)
    }),
    other("another client", |s| s.client.plugin().create_client(&s.options).map(|_: Client| true)),
];

fn has_x(array: &Buffer) -> Result<bool, Error> {
    Ok(numbers(array)? == X)
}
