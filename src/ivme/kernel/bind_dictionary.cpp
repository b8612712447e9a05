#include <nanobind/stl/string_view.h>
#include <mutex>

#include "bind.hpp"

namespace ivme {

namespace {

struct PyDictionary {
    PyDictionary(uint64_t seed, int64_t base, bool of_bytes, bool numbers)
        : dictionary(seed, base, numbers), binary(of_bytes) {}
    Dictionary dictionary;
    bool binary;

    // The bytes of a string; lone surrogates pass, as Python strings may hold them.
    std::string_view view(nb::handle value, nb::object& keep) const {
        if (binary) {
            if (!PyBytes_Check(value.ptr())) throw nb::type_error("this dictionary holds bytes");
            return {PyBytes_AS_STRING(value.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(value.ptr()))};
        }
        if (!PyUnicode_Check(value.ptr())) throw nb::type_error("this dictionary holds strings");
        Py_ssize_t size;
        if (const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size)) return {text, static_cast<size_t>(size)};
        PyErr_Clear();
        keep = nb::steal(PyUnicode_AsEncodedString(value.ptr(), "utf-8", "surrogatepass"));
        if (!keep.is_valid()) throw nb::python_error();
        return {PyBytes_AS_STRING(keep.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(keep.ptr()))};
    }

    nb::object object(int64_t code) const {
        if (code == NULL_CODE) return nb::none();
        if (!dictionary.holds(code)) throw nb::key_error("no string has this code");
        std::string_view text = dictionary.text(code);
        auto size = static_cast<Py_ssize_t>(text.size());
        PyObject* made = binary ? PyBytes_FromStringAndSize(text.data(), size)
                                : PyUnicode_DecodeUTF8(text.data(), size, "surrogatepass");
        if (!made) throw nb::python_error();
        return nb::steal(made);
    }

    // The GIL is let go while waiting: a run that holds the strings may need it to look for signals. Nobody waits for
    // the GIL who holds the strings, as a run may wait for them and have it.
    std::unique_lock<std::shared_mutex> lock() const {
        std::unique_lock<std::shared_mutex> held(dictionary.mutex, std::try_to_lock);
        while (!held.owns_lock()) {
            {
                nb::gil_scoped_release release;
                held.lock();
                held.unlock();
            }
            held = std::unique_lock(dictionary.mutex, std::try_to_lock);
        }
        return held;
    }

    template <class Offset>
    static void require_offsets(const Offset* at, size_t n, size_t bytes) {
        for (size_t i = 0; i < n; ++i) {
            if (at[i] < 0 || at[i + 1] < at[i] || static_cast<uint64_t>(at[i + 1]) > bytes) {
                throw std::invalid_argument("string offsets do not fit their data");
            }
        }
    }

    int64_t encode_one(nb::handle value) {
        if (value.is_none()) return NULL_CODE;
        nb::object keep;
        std::string_view text = view(value, keep);
        auto held = lock();
        return dictionary.encode(text);
    }

    nb::object find(nb::handle value) const {
        if (value.is_none()) return nb::int_(NULL_CODE);
        nb::object keep;
        int64_t code;
        std::string_view text = view(value, keep);
        auto held = lock();
        return dictionary.find(text, &code) ? nb::object(nb::int_(code)) : nb::none();
    }

    nb::object encode(const nb::sequence& values) {
        Array<int64_t> codes;
        size_t n = nb::len(values);
        codes.resize(n);
        nb::object keep;
        auto held = lock();
        size_t i = 0;
        for (nb::handle value : values) {
            if (i < n) codes[i++] = value.is_none() ? NULL_CODE : dictionary.encode(view(value, keep));
        }
        return to_numpy(std::move(codes), n);
    }

    template <class Offset>
    nb::object encode_arrow(nb::ndarray<const Offset, nb::ndim<1>, nb::c_contig> offsets,
                            nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig> data, nb::object validity,
                            size_t first) {
        size_t n = offsets.size() ? offsets.size() - 1 : 0;
        const uint8_t* valid = nullptr;
        nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig> bits;
        if (!validity.is_none()) {
            bits = nb::cast<nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig>>(validity);
            if (bits.size() * 8 < first + n) throw std::invalid_argument("the validity bitmap is too short");
            valid = bits.data();
        }
        const Offset* at = offsets.data();
        require_offsets(at, n, data.size());
        Array<int64_t> codes;
        codes.resize(n);
        {
            nb::gil_scoped_release release;
            std::unique_lock held(dictionary.mutex);
            const char* text = reinterpret_cast<const char*>(data.data());
            auto there = [&](size_t i) { return !valid || (valid[(first + i) / 8] >> ((first + i) % 8) & 1); };
            dictionary.encode_all(text, at, n, there, codes.data());
        }
        return to_numpy(std::move(codes), n);
    }

    // What `encode_arrow` takes; a value that is not valid is a code without a value.
    bool load(nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig> offsets,
              nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig> data,
              nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig> valid) {
        size_t n = offsets.size() ? offsets.size() - 1 : 0;
        require_offsets(offsets.data(), n, data.size());
        if (valid.size() != n)
            throw std::invalid_argument("there are more values than it is said of if they are there");
        auto held = lock();
        auto there = [&](size_t i) { return valid.data()[i] != 0; };
        return dictionary.load(reinterpret_cast<const char*>(data.data()), offsets.data(), n, there);
    }

    // For each code from the base on, whether a value has it that is not loose.
    nb::object present() const {
        Array<uint8_t> found;
        auto held = lock();
        size_t n = dictionary.high();
        found.resize(n);
        for (size_t i = 0; i < n; ++i) {
            int64_t code = dictionary.base() + static_cast<int64_t>(i);
            found[i] = dictionary.holds(code) && !dictionary.is_loose(code);
        }
        return to_numpy(std::move(found), n);
    }

    nb::list decode(const Codes& codes) const {
        nb::list values;
        auto held = lock();
        for (size_t i = 0; i < codes.size(); ++i) values.append(object(codes.data()[i]));
        return values;
    }

    // Arrow's layout of the strings: 64-bit offsets and their bytes; NULL codes are empty.
    nb::tuple decode_arrow(const Codes& codes) const {
        size_t n = codes.size(), total = 0;
        Array<int64_t> offsets;
        offsets.resize(n + 1);
        offsets[0] = 0;
        auto held = lock();
        for (size_t i = 0; i < n; ++i) {
            int64_t code = codes.data()[i];
            if (code != NULL_CODE && !dictionary.holds(code)) throw nb::key_error("no string has this code");
            total += code == NULL_CODE ? 0 : dictionary.text(code).size();
            offsets[i + 1] = static_cast<int64_t>(total);
        }
        Array<uint8_t> data;
        data.resize(total);
        for (size_t i = 0; i < n; ++i) {
            if (codes.data()[i] == NULL_CODE) continue;
            std::string_view text = dictionary.text(codes.data()[i]);
            if (!text.empty()) std::memcpy(data.data() + offsets[i], text.data(), text.size());
        }
        return nb::make_tuple(to_numpy(std::move(offsets), n + 1), to_numpy(std::move(data), total));
    }
};

}  // namespace

Dictionary* dictionary_of(nb::handle object) { return &nb::cast<PyDictionary&>(object).dictionary; }

void bind_dictionary(nb::module_& m) {
    nb::class_<PyDictionary>(m, "Dictionary")
        .def(nb::init<uint64_t, int64_t, bool, bool>(), nb::arg("seed"), nb::arg("base") = 0, nb::arg("binary") = false,
             nb::arg("numbers") = false)
        .def("__len__", [](const PyDictionary& d) { return d.dictionary.size(); })
        .def("encode", &PyDictionary::encode)
        .def("encode_one", &PyDictionary::encode_one, nb::arg("value").none())
        .def("find", &PyDictionary::find, nb::arg("value").none())
        .def("encode_arrow", &PyDictionary::encode_arrow<int32_t>, nb::arg("offsets"), nb::arg("data"),
             nb::arg("validity") = nb::none(), nb::arg("first") = 0)
        .def("encode_arrow", &PyDictionary::encode_arrow<int64_t>, nb::arg("offsets"), nb::arg("data"),
             nb::arg("validity") = nb::none(), nb::arg("first") = 0)
        .def("load", &PyDictionary::load)
        .def("present", &PyDictionary::present)
        .def("decode", &PyDictionary::decode)
        .def("decode_one",
             [](const PyDictionary& d, int64_t code) {
                 auto held = d.lock();
                 return d.object(code);
             })
        .def("decode_arrow", &PyDictionary::decode_arrow)
        .def("memory_bytes", [](const PyDictionary& d) { return d.dictionary.bytes(); });
}

}  // namespace ivme
