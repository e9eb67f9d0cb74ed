"""The check of the import layers must be able to fail."""

import check_layers


def test_the_layers_hold():
    assert check_layers.violations(sorted(check_layers.SOURCE.rglob("*.py"))) == []


def test_an_import_that_points_up_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(check_layers, "SOURCE", tmp_path)
    (tmp_path / "planners").mkdir()
    bad = tmp_path / "planners" / "uct.py"
    bad.write_text("def f():\n    from grasp.training import Loop\n")
    assert "planners/uct.py imports training" in check_layers.violations([bad])[0]
    stray = tmp_path / "helpers.py"
    stray.write_text("")
    assert "no layer" in check_layers.violations([stray])[0]
