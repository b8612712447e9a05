// What the kernel reads of Python's objects, also under the stable ABI, where the macros that skip checks are not
// there.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#ifndef Py_LIMITED_API
#include <datetime.h>
#endif

namespace ivme {

namespace nb = nanobind;

#ifdef Py_LIMITED_API

#define PyTuple_GET_SIZE PyTuple_Size
#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyTuple_SET_ITEM PyTuple_SetItem
#define PyList_GET_SIZE PyList_Size
#define PyList_GET_ITEM PyList_GetItem
#define PyDict_GET_SIZE PyDict_Size
#define PyBytes_AS_STRING PyBytes_AsString
#define PyBytes_GET_SIZE PyBytes_Size
#define PyFloat_AS_DOUBLE PyFloat_AsDouble

inline bool has_getter(PyTypeObject* type) { return PyType_GetSlot(type, Py_tp_descr_get) != nullptr; }

inline bool has_plain_attributes(PyTypeObject* type) {
    return PyType_GetSlot(type, Py_tp_getattro) == reinterpret_cast<void*>(PyObject_GenericGetAttr);
}

// The items of a list or tuple, borrowed.
inline void borrow_items(PyObject* sequence, std::vector<PyObject*>& found) {
    bool is_tuple = PyTuple_CheckExact(sequence);
    for (Py_ssize_t i = 0, n = PySequence_Size(sequence); i < n; ++i) {
        found.push_back(is_tuple ? PyTuple_GetItem(sequence, i) : PyList_GetItem(sequence, i));
    }
}

// The classes of Python's module datetime, and their fields by attribute.
class Calendar {
public:
    Calendar() {
        nb::module_ module = nb::module_::import_("datetime");
        date_ = module.attr("date");
        datetime_ = module.attr("datetime");
    }

    bool is_date(PyObject* value) const { return nb::handle(value).type().is(date_); }
    bool is_datetime(PyObject* value) const { return nb::handle(value).type().is(datetime_); }
    bool has_zone(PyObject* value) const { return !nb::handle(value).attr("tzinfo").is_none(); }
    static int year(PyObject* value) { return number(value, "year"); }
    static int month(PyObject* value) { return number(value, "month"); }
    static int day(PyObject* value) { return number(value, "day"); }
    static int hour(PyObject* value) { return number(value, "hour"); }
    static int minute(PyObject* value) { return number(value, "minute"); }
    static int second(PyObject* value) { return number(value, "second"); }
    static int microsecond(PyObject* value) { return number(value, "microsecond"); }
    static int fold(PyObject* value) { return number(value, "fold"); }

private:
    static int number(PyObject* value, const char* field) { return nb::cast<int>(nb::handle(value).attr(field)); }

    nb::object date_, datetime_;
};

#else

inline bool has_getter(PyTypeObject* type) { return type->tp_descr_get != nullptr; }

inline bool has_plain_attributes(PyTypeObject* type) { return type->tp_getattro == PyObject_GenericGetAttr; }

inline void borrow_items(PyObject* sequence, std::vector<PyObject*>& found) {
    PyObject** items = PySequence_Fast_ITEMS(sequence);
    found.assign(items, items + PySequence_Fast_GET_SIZE(sequence));
}

// The same by the C interface of the module, which reads no attributes.
class Calendar {
public:
    Calendar() {
        if (!PyDateTimeAPI) PyDateTime_IMPORT;
        if (!PyDateTimeAPI) throw nb::python_error();
    }

    bool is_date(PyObject* value) const { return PyDate_CheckExact(value); }
    bool is_datetime(PyObject* value) const { return PyDateTime_CheckExact(value); }
    bool has_zone(PyObject* value) const { return PyDateTime_DATE_GET_TZINFO(value) != Py_None; }
    static int year(PyObject* value) { return PyDateTime_GET_YEAR(value); }
    static int month(PyObject* value) { return PyDateTime_GET_MONTH(value); }
    static int day(PyObject* value) { return PyDateTime_GET_DAY(value); }
    static int hour(PyObject* value) { return PyDateTime_DATE_GET_HOUR(value); }
    static int minute(PyObject* value) { return PyDateTime_DATE_GET_MINUTE(value); }
    static int second(PyObject* value) { return PyDateTime_DATE_GET_SECOND(value); }
    static int microsecond(PyObject* value) { return PyDateTime_DATE_GET_MICROSECOND(value); }
    static int fold(PyObject* value) { return PyDateTime_DATE_GET_FOLD(value); }
};

#endif

}  // namespace ivme
