// Compiled expressions and what they remember by code, as Python sees them.
#include "bound_expressions.hpp"

namespace ivme {

namespace {

void fill(CodeTable& table, const Codes& codes, const Codes& values, const States& states) {
    if (values.size() < codes.size() || states.size() < codes.size()) {
        throw std::invalid_argument("a table is filled with a value and a state for each code");
    }
    for (size_t i = 0; i < codes.size(); ++i) {
        table.fill(codes.data()[i], values.data()[i], states.data()[i] == CodeTable::DOUBTFUL);
    }
}

}  // namespace

void bind_expression(nb::module_& m) {
    nb::class_<CodeTable>(m, "CodeTable")
        .def(nb::init<int64_t>(), nb::arg("base") = 0)
        .def("requested", [](const CodeTable& table) { return array_of(table.requested()); })
        .def("withdraw", &CodeTable::withdraw)
        .def("fill", &fill)
        .def("forget", &CodeTable::forget)
        .def("memory_bytes", &CodeTable::bytes);
    nb::class_<Expressions>(m, "Expressions")
        .def(nb::init<unsigned, std::string, unsigned, unsigned, const nb::list&, const nb::list&, const nb::list&,
                      const std::vector<ExpressionProgram::Spec>&>(),
             nb::arg("inputs"), nb::arg("kinds"), nb::arg("outputs"), nb::arg("foreign"), nb::arg("tables"),
             nb::arg("members"), nb::arg("dictionaries"), nb::arg("instructions"))
        .def("set_constant", &Expressions::set_constant, nb::call_guard<nb::gil_scoped_release>())
        .def("run", &Expressions::run)
        .def("run_row", &Expressions::run_row)
        .def_prop_rw(
            "is_current", [](const Expressions& e) { return e.is_current(); },
            [](Expressions& e, bool is_current) { e.set_current(is_current); })
        .def("withdraw", &Expressions::withdraw);
}

}  // namespace ivme
