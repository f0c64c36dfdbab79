//! Arrays on devices.

use crate::array::{Array, Element};
use crate::device::Device;
use crate::host::{self, ElementType, Result};

/// An array on a device (`PJRT_Buffer`). Dropping it destroys it.
#[derive(Debug)]
pub struct Buffer(pub(crate) host::Buffer);

impl Buffer {
    /// Waits until the array is ready, and copies it to the host (`PJRT_Buffer_ToHostBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error. The error of an execution is also that of its outputs.
    pub fn to_array(&self) -> Result<Array> {
        Ok(Array { element_type: self.element_type()?, dims: self.dims()?, bytes: self.0.read()? })
    }

    /// Waits until the array is ready, and returns its elements, row by row.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, or INVALID_ARGUMENT if the elements have another type.
    pub fn read<T: Element>(&self) -> Result<Vec<T>> {
        self.to_array()?.elements()
    }

    /// Waits until the array is ready (`PJRT_Buffer_ReadyEvent`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn wait(&self) -> Result<()> {
        self.0.ready()?.wait()
    }

    /// Returns the element type (`PJRT_Buffer_ElementType`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn element_type(&self) -> Result<ElementType> {
        self.0.element_type()
    }

    /// Returns the dimensions (`PJRT_Buffer_Dimensions`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn dims(&self) -> Result<Vec<i64>> {
        self.0.dims()
    }

    /// Returns the kind of the memory that holds the array (`PJRT_Buffer_Memory`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memory_kind(&self) -> Result<String> {
        self.0.memory()?.kind()
    }

    /// Copies the array to another device (`PJRT_Buffer_CopyToDevice`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn copy_to(&self, device: Device<'_>) -> Result<Self> {
        self.0.copy_to_device(device.0).map(Self)
    }

    /// Frees the memory of the array (`PJRT_Buffer_Delete`). Uses of the buffer fail from now on.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn delete(&self) -> Result<()> {
        self.0.delete()
    }

    /// Returns `true` if the array was deleted, or donated to an execution (`PJRT_Buffer_IsDeleted`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn is_deleted(&self) -> Result<bool> {
        self.0.is_deleted()
    }
}
