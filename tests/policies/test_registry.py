"""Policies by name, their parameters from Python and from text, and plug-ins."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest

from tests.strategies import conversation, counted
from workbench import policies
from workbench.errors import PluginError, PolicyError
from workbench.model import Budget
from workbench.policies import registry
from workbench.policies.base import PolicyInfo, check_params, kept_items, make_selection, param

BUILT_IN = ("none", "kernel", "agentd", "scv", "vak")


@dataclass(frozen=True)
class Odd:
    """A policy as a plug-in would bring it, with a parameter of every type."""

    size: int = param(4, label="Size", help="A number.", low=1, high=9)
    share: float = param(0.5, label="Share", help="A part.", low=0.0, high=1.0)
    loud: bool = param(False, label="Loud", help="Yes or no.")
    tag: str = param("x", label="Tag", help="A text.")
    limit: int | None = param(None, label="Limit", help="Follows the window.", low=0, follows="window")
    place: str = param("front", label="Place", help="One of two.", choices=("front", "back"))
    level: int = param(1, label="Level", help="One of two.", choices=(1, 2))

    info: ClassVar[PolicyInfo] = PolicyInfo("odd", "Odd", "For tests.", evidence="none")
    promises: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self):
        check_params(self)

    def select(self, request, previous=None):
        return make_selection(self, request, kept_items(request.view), own=(0, 0))


class NotAPolicy:
    pass


@dataclass(frozen=True)
class Boaster(Odd):
    info: ClassVar[PolicyInfo] = PolicyInfo("boaster", "Boaster", "For tests.", evidence="none")
    promises: ClassVar[frozenset[str]] = frozenset({"miracles"})


@pytest.fixture
def plugins(monkeypatch):
    """Make the given names look like installed plug-ins."""

    def install(*points):
        made = [EntryPoint(name, value, registry.GROUP) for name, value in points]
        monkeypatch.setattr(registry, "entry_points", lambda group: [point for point in made if point.group == group])

    return install


def test_the_built_in_ones_come_first():
    assert policies.list()[: len(BUILT_IN)] == BUILT_IN
    assert policies.get("scv") == policies.Scv()
    assert policies.get("none") == policies.NoPolicy()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(PolicyError, match=r"no policy is called 'scw'\. Did you mean scv\? Known: none, kernel, agentd, scv, vak"):
        policies.get("scw")


def test_an_unknown_parameter_names_the_allowed_ones():
    with pytest.raises(PolicyError, match="policy scv has no parameter 'max_chars'; it has bytes_per_token, summary_max_chars"):
        policies.make("scv", max_chars=3)
    with pytest.raises(PolicyError, match="policy none has no parameter 'x'; it has none"):
        policies.make("none", x=3)


def test_make_changes_a_policy_that_is_given():
    assert policies.make(policies.Scv(bytes_per_token=4), summary_max_chars=10) == policies.Scv(4, 10)
    assert policies.make("scv") == policies.Scv()


@pytest.mark.parametrize("value", [0, -1, 17, 3.0, True, None, "3", [3], pytest.param(10**5000, id="huge")])
def test_a_value_that_is_not_allowed(value):
    with pytest.raises(PolicyError, match=r"scv\.bytes_per_token = .*: (give a whole number|allowed are 1 to 16)$"):
        policies.make("scv", bytes_per_token=value)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("size", " 7 ", 7),
        ("share", "0.25", 0.25),
        ("share", "1", 1.0),
        ("loud", "yes", True),
        ("loud", "FALSE", False),
        ("tag", "a=b", "a=b"),
        ("limit", "none", None),
        ("limit", "32_000", 32_000),
        ("place", "back", "back"),
        ("level", "2", 2),
    ],
)
def test_values_from_text(field, text, value):
    made = getattr(policies.make_from_text(Odd(), {field: text}), field)
    assert (made, type(made)) == (value, type(value))


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("size", "x"),
        ("size", "2.5"),
        ("size", "none"),
        ("size", "99"),
        ("share", "nan"),
        ("share", "2"),
        ("loud", "perhaps"),
        ("limit", "-1"),
        ("place", "side"),
        ("level", "3"),
        ("size", "9" * 5000),
        ("nothing", "1"),
    ],
)
def test_texts_that_are_no_value(field, text):
    with pytest.raises(PolicyError) as raised:
        policies.make_from_text(Odd(), {field: text})
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 200
    assert field in str(raised.value)


def test_a_plug_in_is_listed_and_used(plugins):
    plugins(("odd", "tests.policies.test_registry:Odd"))
    assert policies.list() == (*BUILT_IN, "odd")
    assert policies.make("odd", size=5) == Odd(size=5)
    assert policies.select(counted(conversation(("user", "hi"))), "odd").fates == ("kept",)


def test_a_plug_in_cannot_take_a_built_in_name(plugins):
    plugins(("scv", "tests.policies.test_registry:Odd"))
    assert policies.list() == BUILT_IN
    assert policies.get("scv") == policies.Scv()


@pytest.mark.parametrize(
    ("points", "name", "says"),
    [
        ([("gone", "no_such_module_here:X")], "gone", "cannot be loaded: ModuleNotFoundError"),
        ([("gone", "tests.policies.test_registry:Missing")], "gone", "cannot be loaded: AttributeError"),
        ([("bad", "tests.policies.test_registry:NotAPolicy")], "bad", "is no dataclass with a method select"),
        ([("other", "tests.policies.test_registry:Odd")], "other", "has no info of that name"),
        ([("boaster", "tests.policies.test_registry:Boaster")], "boaster", "promises 'miracles'"),
        ([("odd", "tests.policies.test_registry:Odd"), ("odd", "elsewhere:Odd")], "odd", "uninstall all but one"),
    ],
)
def test_a_broken_plug_in_is_named_and_hides_no_other(plugins, points, name, says):
    plugins(*points)
    assert name in policies.list()
    with pytest.raises(PluginError, match=says):
        policies.get(name)
    assert policies.get("scv") == policies.Scv()


def test_select_says_what_is_wrong_with_its_arguments():
    ledger = counted(conversation(("user", "hi")))
    for options, says in [
        ({"thread": "other"}, "no thread 'other'; this transcript has main"),
        ({"history": "both"}, "choose full or live"),
        ({"budget": Budget(-5)}, "max_tokens = -5"),
        ({"budget": Budget(5.0)}, "max_tokens = 5.0"),
        ({"budget": 32_000}, "budget = 32000; give a Budget"),
        ({"pins": ["0"]}, "give the indices of messages"),
        ({"pins": [0.5]}, "give the indices of messages"),
        ({"pins": 3}, "give the indices of messages"),
    ]:
        with pytest.raises(PolicyError, match=says):
            policies.select(ledger, "none", **options)


@pytest.mark.parametrize("wrong", [3, None, [], object, policies.Scv])
def test_what_is_no_policy_is_refused(wrong):
    with pytest.raises(PolicyError, match=r"give a name .* or a policy"):
        policies.select(counted(conversation(("user", "hi"))), wrong)
    with pytest.raises(PolicyError, match="give a name"):
        policies.make(wrong)


def test_a_policy_that_names_a_message_of_another_view_is_told():
    ledger = counted(conversation(("user", "hi")))
    request = policies.Request(ledger.view())
    with pytest.raises(PolicyError, match="message 7 is not in thread 'main'"):
        make_selection(Odd(), request, (policies.Kept(7),), own=(0, 0))


def test_huge_numbers_are_no_trouble():
    ledger = counted(conversation(("user", "hi")))
    assert policies.select(ledger, "scv", Budget(10**30, 10**6, 0)).fates == ("kept",)
    assert policies.select(ledger, "none", Budget(0, 10**30, 10**30)).fates == ("kept",)
