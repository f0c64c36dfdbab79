"""Forwards the handlers and types that `jax.ffi` registers for a platform to its plugin.

A plugin receives them through the FFI extension of its function table (`PJRT_FFI_Extension`). This module declares the structs
of the extension that it uses.
"""

import ctypes
import warnings
from collections.abc import Collection
from typing import Any

# PJRT_Extension_Type_FFI.
FFI_EXTENSION = 5

# The `api_version` of XLA's typed FFI in `jax.ffi.register_ffi_target`.
TYPED = 1


class _Extension(ctypes.Structure):
    """PJRT_Extension_Base."""


_Extension._fields_ = [
    ("struct_size", ctypes.c_size_t),
    ("type", ctypes.c_uint),
    ("next", ctypes.POINTER(_Extension)),
]

# A function takes a pointer to its arguments and returns null or an error.
_Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _FfiExtension(ctypes.Structure):
    _fields_ = [
        ("base", _Extension),
        ("type_register", _Function),
        ("user_data_add", _Function),
        ("register_handler", _Function),
    ]


class _Api(ctypes.Structure):
    """The beginning of PJRT_Api."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.POINTER(_Extension)),
        ("version_struct_size", ctypes.c_size_t),
        ("version_extension_start", ctypes.c_void_p),
        ("major_version", ctypes.c_int),
        ("minor_version", ctypes.c_int),
        ("error_destroy", _Function),
        ("error_message", _Function),
    ]


class _Arguments(ctypes.Structure):
    """The arguments of a function, which begin with their size."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        last, _ = self._fields_[-1]
        field = getattr(type(self), last)
        self.struct_size = field.offset + field.size


class _RegisterHandler(_Arguments):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("target_name", ctypes.c_char_p),
        ("target_name_size", ctypes.c_size_t),
        ("handler", ctypes.c_void_p),
        ("platform_name", ctypes.c_char_p),
        ("platform_name_size", ctypes.c_size_t),
        ("traits", ctypes.c_uint),
    ]


class _TypeRegister(_Arguments):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("type_name", ctypes.c_char_p),
        ("type_name_size", ctypes.c_size_t),
        ("type_id", ctypes.c_int64),
        ("type_info", ctypes.c_void_p),
    ]


class _ErrorMessage(_Arguments):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("message", ctypes.c_void_p),
        ("message_size", ctypes.c_size_t),
    ]


class _ErrorDestroy(_Arguments):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
    ]


class Plugin:
    """The FFI extension of a plugin, which the capsule with the plugin's function table provides."""

    def __init__(self, api: _Api, extension: _FfiExtension) -> None:
        self._api = api
        self._ffi = extension

    @staticmethod
    def of(c_api: Any) -> "Plugin | None":
        """Returns the extension, or None if the plugin does not have it."""
        api = ctypes.cast(_pointer(c_api), ctypes.POINTER(_Api)).contents
        link = api.extension_start
        while link and link.contents.type != FFI_EXTENSION:
            link = link.contents.next
        return Plugin(api, ctypes.cast(link, ctypes.POINTER(_FfiExtension)).contents) if link else None

    def register_handler(self, name: str, function: Any, platform: str, api_version: int = 0, traits: Any = 0) -> None:
        """Registers a handler for `jax.ffi.register_ffi_target`.

        `function` is a capsule, or a dictionary with a capsule for each stage of the handler.
        """
        if api_version != TYPED:
            raise NotImplementedError(
                f"{platform} supports only handlers of XLA's typed FFI (api_version={TYPED}); {name!r} has api_version={api_version}"
            )
        if isinstance(function, dict):
            others = sorted(stage for stage, handler in function.items() if stage != "execute" and handler is not None)
            if others or "execute" not in function:
                raise NotImplementedError(
                    f"{platform} supports only the stage 'execute' of a handler; {name!r} has {sorted(function)}"
                )
            function = function["execute"]
        target, on = name.encode(), platform.encode()
        self._call(
            self._ffi.register_handler,
            _RegisterHandler(
                target_name=target,
                target_name_size=len(target),
                handler=_pointer(function),
                platform_name=on,
                platform_name_size=len(on),
                traits=int(traits),
            ),
        )

    def register_type(self, name: str, registration: Any) -> None:
        """Registers a type for `jax.ffi.register_ffi_type`, and assigns an id to it unless it has one."""
        capsule = registration["type_id"] if isinstance(registration, dict) else registration
        number = ctypes.cast(_pointer(capsule), ctypes.POINTER(ctypes.c_int64))
        text = name.encode()
        arguments = _TypeRegister(type_name=text, type_name_size=len(text), type_id=number.contents.value)
        self._call(self._ffi.type_register, arguments)
        number.contents.value = arguments.type_id

    def _call(self, function: Any, arguments: _Arguments) -> None:
        error = function(ctypes.addressof(arguments))
        if not error:
            return
        message = _ErrorMessage(error=error)
        self._api.error_message(ctypes.addressof(message))
        text = ctypes.string_at(message.message, message.message_size).decode(errors="replace")
        destroy = _ErrorDestroy(error=error)
        self._api.error_destroy(ctypes.addressof(destroy))
        raise ValueError(text)


class HandlersOf:
    """Registers the handlers of another platform with a plugin that replaces the backend of that platform.

    Libraries register all their handlers when they are imported. A handler that the plugin cannot call therefore causes a
    warning instead of an error. Functions of `own` are skipped: the plugin has its own handlers for their targets.
    """

    def __init__(self, plugin: Plugin, platform: str, own: Collection[Any]) -> None:
        self._plugin = plugin
        self._platform = platform
        self._own = frozenset(map(_pointer, own))

    def register_handler(self, name: str, function: Any, _: str, api_version: int = 0, traits: Any = 0) -> None:
        """Registers a handler for `jax.ffi.register_ffi_target`, under the platform of the plugin."""
        if not isinstance(function, dict) and _pointer(function) in self._own:
            return
        try:
            self._plugin.register_handler(name, function, self._platform, api_version, traits)
        except NotImplementedError as error:
            warnings.warn(f"programs cannot call the handler {name!r}: {error}", RuntimeWarning, stacklevel=4)


def _pointer(capsule: Any) -> int:
    """Returns the pointer in a capsule with any name."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer_of(capsule, name_of(capsule))
