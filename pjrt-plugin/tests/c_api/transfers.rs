//! Transfer managers: buffers that are filled piece by piece.

use std::ffi::c_void;
use std::ptr;

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::dummy::run_queue;
use crate::host::*;

/// A transfer manager, destroyed at the end.
struct Manager(*mut PJRT_AsyncHostToDeviceTransferManager);

impl Drop for Manager {
    fn drop(&mut self) {
        call!(PJRT_AsyncHostToDeviceTransferManager_Destroy(
            PJRT_AsyncHostToDeviceTransferManager_Destroy_Args { transfer_manager: self.0 }
        ))
        .unwrap();
    }
}

fn spec(element_type: PJRT_Buffer_Type, dims: &[i64]) -> PJRT_ShapeSpec {
    PJRT_ShapeSpec { dims: dims.as_ptr(), num_dims: dims.len(), element_type, ..PJRT_ShapeSpec::zeroed() }
}

impl Manager {
    fn try_new(
        client: &Client,
        specs: &mut [PJRT_ShapeSpec],
        layouts: &mut [*mut PJRT_Buffer_MemoryLayout],
    ) -> Result<Self> {
        call!(PJRT_Client_CreateBuffersForAsyncHostToDevice(
            PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
                client: client.0,
                shape_specs: specs.as_mut_ptr(),
                num_shape_specs: specs.len(),
                device_layouts: if layouts.is_empty() { ptr::null_mut() } else { layouts.as_mut_ptr() },
                num_device_layouts: layouts.len(),
                memory: client.memories(1)[0],
            }
        ))
        .map(|args| Self(args.transfer_manager))
    }

    /// One buffer of four numbers.
    fn of_four(client: &Client) -> Self {
        Self::try_new(client, &mut [spec(PJRT_Buffer_Type_F32, &[4])], &mut []).unwrap()
    }

    fn retrieve(&self, buffer_index: i32) -> Result<Buffer> {
        call!(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(
            PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
                transfer_manager: self.0,
                buffer_index
            }
        ))
        .map(|args| Buffer(args.buffer_out))
    }

    fn send(&self, buffer_index: i32, offset: i64, numbers: &[f32], is_last_transfer: bool) -> Result<()> {
        let args = call!(PJRT_AsyncHostToDeviceTransferManager_TransferData(
            PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
                transfer_manager: self.0,
                buffer_index,
                data: numbers.as_ptr().cast(),
                offset,
                transfer_size: 4 * numbers.len() as i64,
                is_last_transfer,
            }
        ))?;
        await_event(args.done_with_h2d_transfer)?;
        destroy_event(args.done_with_h2d_transfer);
        Ok(())
    }

    fn send_literal(
        &self,
        dims: &[i64],
        data: *const c_void,
        layout: *mut PJRT_Buffer_MemoryLayout,
    ) -> Result<()> {
        let args = call!(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(
            PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
                transfer_manager: self.0,
                data,
                shape_dims: dims.as_ptr(),
                shape_num_dims: dims.len(),
                shape_element_type: PJRT_Buffer_Type_F32,
                shape_layout: layout,
            }
        ))?;
        await_event(args.done_with_h2d_transfer)?;
        destroy_event(args.done_with_h2d_transfer);
        Ok(())
    }

    fn set_error(&self, message: &str) -> Result<()> {
        call!(PJRT_AsyncHostToDeviceTransferManager_SetBufferError(
            PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
                transfer_manager: self.0,
                error_code: PJRT_Error_Code_DATA_LOSS,
                error_message: message.as_ptr().cast(),
                error_message_size: message.len(),
            }
        ))
        .map(drop)
    }
}

/// The order of dimensions in which the first one is the fastest.
fn column_major() -> PJRT_Buffer_MemoryLayout {
    static ORDER: [i64; 2] = [0, 1];
    let tiled = PJRT_Buffer_MemoryLayout_Tiled {
        minor_to_major: ORDER.as_ptr(),
        minor_to_major_size: 2,
        ..PJRT_Buffer_MemoryLayout_Tiled::zeroed()
    };
    PJRT_Buffer_MemoryLayout {
        u: PJRT_Buffer_MemoryLayout_Union { tiled },
        type_: PJRT_Buffer_MemoryLayout_Type_Tiled,
        ..PJRT_Buffer_MemoryLayout::zeroed()
    }
}

#[test]
fn a_buffer_is_ready_after_its_last_piece_in_any_order() {
    let client = Client::new(&[]);
    let manager = Manager::of_four(&client);
    let buffer = manager.retrieve(0).unwrap();
    let event = buffer.ready();
    manager.send(0, 8, &[3.0, 4.0], false).unwrap();
    assert!(!is_ready(event));
    manager.send(0, 0, &[1.0, 2.0], true).unwrap();
    await_event(event).unwrap();
    destroy_event(event);
    assert_eq!(buffer.numbers().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let device = call!(PJRT_Buffer_Device(PJRT_Buffer_Device_Args { buffer: buffer.0 })).unwrap().device;
    assert_eq!(device, client.devices()[1]);
}

#[test]
fn a_buffer_can_be_used_before_it_is_filled_and_after_its_manager_is_gone() {
    let client = Client::new(&[option("uploads", 301)]);
    let manager = Manager::try_new(&client, &mut [spec(PJRT_Buffer_Type_F32, &[4])], &mut []).unwrap();
    let buffer = manager.retrieve(0).unwrap();
    let dst_memory = client.memories(0)[0];
    let args =
        call!(PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args { buffer: buffer.0, dst_memory }))
            .unwrap();
    let copy = Buffer(args.dst_buffer);
    manager.send(0, 0, &[1.0, 2.0, 3.0, 4.0], true).unwrap();
    drop((manager, buffer));
    while run_queue(301) > 0 {}
    assert_eq!(copy.numbers().unwrap(), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn pieces_that_do_not_fit_are_refused() {
    let client = Client::new(&[]);
    let manager = Manager::of_four(&client);
    for (index, offset, code) in [
        (1, 0, ErrorCode::InvalidArgument),
        (-1, 0, ErrorCode::InvalidArgument),
        (0, 12, ErrorCode::InvalidArgument),
        (0, -1, ErrorCode::InvalidArgument),
    ] {
        let error = manager.send(index, offset, &[1.0, 2.0], false).unwrap_err();
        assert_eq!(error.code, code as u32, "{error:?}");
    }
    manager.send(0, 0, &[1.0; 4], true).unwrap();
    let error = manager.send(0, 0, &[2.0; 4], true).unwrap_err();
    assert_eq!(error.code, ErrorCode::FailedPrecondition as u32, "{error:?}");
    assert!(manager.set_error("too late").is_err());
    assert_eq!(manager.retrieve(0).unwrap().numbers().unwrap(), [1.0; 4]);
    let error = manager.retrieve(0).err().unwrap();
    assert_eq!(error.code, ErrorCode::FailedPrecondition as u32, "{error:?}");
}

#[test]
fn a_buffer_gets_an_error_instead_of_data() {
    let client = Client::new(&[]);
    let manager = Manager::of_four(&client);
    manager.set_error("the source is gone").unwrap();
    let buffer = manager.retrieve(0).unwrap();
    let error = buffer.numbers().unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::DataLoss as u32, "the source is gone"));
    assert!(manager.send(0, 0, &[1.0; 4], true).is_err());
}

#[test]
fn a_buffer_whose_manager_goes_first_is_cancelled() {
    let client = Client::new(&[]);
    let manager = Manager::of_four(&client);
    let buffer = manager.retrieve(0).unwrap();
    let event = buffer.ready();
    drop(manager);
    assert_eq!(await_event(event).unwrap_err().code, ErrorCode::Cancelled as u32);
    destroy_event(event);
}

#[test]
fn an_upload_that_fails_is_in_the_buffer_too() {
    let client = Client::new(&[text_option("panic_in", "buffer_from_host")]);
    let manager = Manager::of_four(&client);
    let buffer = manager.retrieve(0).unwrap();
    let error = manager.send(0, 0, &[1.0; 4], true).unwrap_err();
    assert!(error.message.contains("asked to panic"), "{error:?}");
    assert!(buffer.wait().unwrap_err().message.contains("asked to panic"));
}

#[test]
fn pieces_and_literals_come_in_the_layout_that_the_host_names() {
    let client = Client::new(&[]);
    let mut layout = column_major();
    let columns = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0_f32];
    let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0_f32];
    let matrix = spec(PJRT_Buffer_Type_F32, &[2, 3]);
    let manager = Manager::try_new(&client, &mut [matrix], &mut [&raw mut layout]).unwrap();
    manager.send(0, 0, &columns, true).unwrap();
    assert_eq!(manager.retrieve(0).unwrap().numbers().unwrap(), rows);
    let manager = Manager::try_new(&client, &mut [matrix], &mut []).unwrap();
    let error = manager.send_literal(&[3, 2], columns.as_ptr().cast(), ptr::null_mut()).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32, "{error:?}");
    manager.send_literal(&[2, 3], columns.as_ptr().cast(), &raw mut layout).unwrap();
    assert_eq!(manager.retrieve(0).unwrap().numbers().unwrap(), rows);
    let error = Manager::try_new(&client, &mut [matrix, matrix], &mut [&raw mut layout]).err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32, "{error:?}");
}

#[test]
fn a_manager_describes_its_buffers() {
    let client = Client::new(&[]);
    let mut specs = [
        spec(PJRT_Buffer_Type_F32, &[4]),
        spec(PJRT_Buffer_Type_S4, &[2, 3]),
        spec(PJRT_Buffer_Type_F64, &[0]),
    ];
    let manager = Manager::try_new(&client, &mut specs, &mut []).unwrap();
    let transfer_manager = manager.0;
    let args = call!(PJRT_AsyncHostToDeviceTransferManager_BufferCount(
        PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args { transfer_manager }
    ));
    assert_eq!(args.unwrap().buffer_count, 3);
    for (buffer_index, size) in [(0, 16), (1, 6), (2, 0)] {
        let args = call!(PJRT_AsyncHostToDeviceTransferManager_BufferSize(
            PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args { transfer_manager, buffer_index }
        ));
        assert_eq!(args.unwrap().buffer_size, size);
    }
    let args = call!(PJRT_AsyncHostToDeviceTransferManager_Device(
        PJRT_AsyncHostToDeviceTransferManager_Device_Args { transfer_manager }
    ));
    assert_eq!(args.unwrap().device_out, client.devices()[1]);
    let metadata = [text_option("source", "disk"), option("part", 3)];
    call!(PJRT_AsyncHostToDeviceTransferManager_AddMetadata(
        PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args {
            transfer_manager,
            transfer_metadata: metadata.as_ptr(),
            num_metadata: metadata.len(),
        }
    ))
    .unwrap();
    // An array of nothing is complete with a piece of nothing.
    manager.send(2, 0, &[], true).unwrap();
    assert_eq!(manager.retrieve(2).unwrap().bytes(ptr::null_mut()).unwrap(), [0_u8; 0]);
}
