// Record batches to codes, as Python sees it.
#include "arrow_columns.hpp"

namespace ivme {

void bind_arrow(nb::module_& m) {
    nb::class_<ArrowColumns>(m, "ArrowColumns")
        .def(nb::init<const std::vector<ArrowColumns::Spec>&>())
        .def("encode", &ArrowColumns::encode);
    m.def("share_encoding_from", [](size_t values) { return shared_values.exchange(values); });
}

}  // namespace ivme
