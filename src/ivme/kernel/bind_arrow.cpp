// Record batches to codes, as Python sees it.
#include "arrow_columns.hpp"
#include "rows_ahead.hpp"

namespace ivme {

// A fork holds the GIL, which a task may wait for, or the thread that has what the task waits for: so tasks end before.
static void register_at_fork() {
    nb::module_ os = nb::module_::import_("os");
    if (!nb::hasattr(os, "register_at_fork")) return;  // Windows
    auto before = [] {
        nb::gil_scoped_release release;
        Workers::shared().hold_tasks();
    };
    auto after = [] { Workers::shared().let_tasks_go(); };
    nb::object hold = nb::cpp_function(before), go_on = nb::cpp_function(after);
    os.attr("register_at_fork")(nb::arg("before") = hold, nb::arg("after_in_parent") = go_on);
}

void bind_arrow(nb::module_& m) {
    nb::class_<ArrowColumns>(m, "ArrowColumns")
        .def(nb::init<const std::vector<ArrowColumns::Spec>&>())
        .def("encode", &ArrowColumns::encode);
    register_at_fork();
    m.def("encode_ahead_from", [](size_t values) { return values_ahead.exchange(values); });
    m.def("share_encoding_from", [](size_t values) { return shared_values.exchange(values); });
}

}  // namespace ivme
