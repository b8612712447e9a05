// The columns of a table as Arrow has them: one call takes a record batch to codes.
#include "arrow.hpp"
#include "bind.hpp"

namespace ivme {

namespace {

class ArrowColumns {
public:
    using Spec = std::tuple<std::string, std::string, int64_t, int64_t, nb::object>;

    explicit ArrowColumns(const std::vector<Spec>& specs) {
        for (const auto& [name, format, least, most, dictionary] : specs) {
            bool strings = format == "u" || format == "z";
            if (!has_codes(format)) throw std::invalid_argument("there are no codes for Arrow's format " + format);
            if (strings == dictionary.is_none())
                throw std::invalid_argument("strings, and they only, have a dictionary");
            columns_.push_back({name, format, least, most, strings ? dictionary_of(dictionary) : nullptr});
            if (strings) held_.push_back(dictionary);
        }
    }

    // The codes of all columns, one row of the array for each; None if the data are of other types, or a value is in
    // doubt. `given` are the two capsules that `__arrow_c_array__` returns.
    nb::object encode(const nb::tuple& given) const {
        if (given.size() != 2) throw std::invalid_argument("__arrow_c_array__ returns two capsules");
        auto* schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(given[0].ptr(), "arrow_schema"));
        if (!schema) throw nb::python_error();
        auto* array = static_cast<ArrowArray*>(PyCapsule_GetPointer(given[1].ptr(), "arrow_array"));
        if (!array) throw nb::python_error();
        if (!array->length || !is_of(columns_, *schema, *array)) return nb::none();
        auto rows = static_cast<size_t>(array->length);
        Array<int64_t> codes;
        codes.resize(rows * columns_.size());
        bool certain = true;
        {
            nb::gil_scoped_release release;
            for (size_t c = 0; c < columns_.size() && certain; ++c) {
                certain = encode_column(columns_[c], *array->children[c], codes.data() + c * rows);
            }
        }
        if (!certain) return nb::none();
        auto* owned = new Array<int64_t>(std::move(codes));
        nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Array<int64_t>*>(p); });
        return nb::cast(nb::ndarray<nb::numpy, int64_t>(owned->data(), {columns_.size(), rows}, owner));
    }

private:
    std::vector<ArrowColumn> columns_;
    std::vector<nb::object> held_;
};

}  // namespace

void bind_arrow(nb::module_& m) {
    nb::class_<ArrowColumns>(m, "ArrowColumns")
        .def(nb::init<const std::vector<ArrowColumns::Spec>&>())
        .def("encode", &ArrowColumns::encode);
}

}  // namespace ivme
